/* SPDX-License-Identifier: MIT
 *
 * What the files of core share: the fast paths' way out, the thread's state, and the checks every entry makes.
 */
#ifndef SUTLER_CORE_CORE_H
#define SUTLER_CORE_CORE_H

#include "core/results.h"
#include "heap/demand.h"
#include "heap/heap.h"

/* ---- the fast paths (hot_x86_64.S; hot_generic.c where there are no sections) ---- */

enum hot_pushed {
    hot_pushed = HOT_PUSHED,
    hot_pushed_notify = HOT_PUSHED_NOTIFY, /* the threshold is reached: the caller goes on with free_notify */
    hot_foreign = HOT_FOREIGN,             /* another heap owns the superblock, or none does */
    hot_double = HOT_DOUBLE,               /* it is the top block already */
    hot_aborted = HOT_ABORTED,
};

/* In rcs mode, one try each. */
void *hot_pop(size_t c);
enum hot_pushed hot_push(void *block, struct superblock *s);
/* Puts a block of another heap's superblock, whose `batch` is not 0, into the outbox (heap/outbox.h).  Returns the
 * chain that the caller has to deliver (free_deliver), which is this block's if it is as long as a batch now, or
 * another slice's that had its place; or SEND_KEPT; or SEND_REFUSED if there is no outbox or the section was
 * interrupted; or SEND_DOUBLE if it is the chain's top block already. */
uint64_t hot_send(void *block, const struct superblock *s);

/* Where the fast paths go when the case is not simple. */
void *malloc_any(size_t size);
void *malloc_slow(size_t c);
void *new_any(size_t size);
void *new_slow(size_t c);
void free_slow(void *p);
void free_double(void *p);
void free_notify(struct superblock *s);
void free_deliver(uint64_t chain);

/* A block for operator new; throws std::bad_alloc if there is no memory and no new_handler helps. */
void *new_block(size_t size, size_t alignment);
/* Without memory: calls the new_handler, and it may be tried again; or throws. */
void new_failed(void);

/* ---- initialisation, slow paths and fast paths (init.c, slow.c, fast_paths.c) ---- */

enum core_state { core_untouched, core_is_ready, core_failed };
extern _Atomic uint32_t core_state;
bool core_start(void);
/* True once the heap can be used; the first caller initialises it.  False if there is no memory at all. */
static inline bool core_ready(void)
{
    return likely(atomic_load_explicit(&core_state, memory_order_acquire) == core_is_ready) || core_start();
}

/* Slow paths begin with entering: nothing may be held.  False if this thread was interrupted by a signal inside a
 * slow path and must not wait for locks: take signal-safe blocks, push frees remotely. */
bool slow_enter(void);
void slow_leave(void);
/* The same, and the manager hears of it; where there is none, a part of its work is done (not by who took a block,
 * where others hook what goes: os/hooks.h). */
enum slow_did { slow_took, slow_gave };
void slow_leave_and_hint(enum slow_did did);
/* True between the two. */
extern THREAD_SHARED bool in_slow_path;
/* Around a short way that has something in its hands for a moment: a child that a signal handler makes there recovers
 * later, as in a slow path.  Begin's result is for end: in a handler it may be in a slow path as it is. */
static inline bool short_way_begin(void)
{
    const bool was = in_slow_path;
    in_slow_path = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return was;
}
static inline void short_way_end(bool was)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    in_slow_path = was;
}

/* Where there is no manager, calloc, and realloc of a block that moves, count as a part of a slow path: a program may
 * live for hours by mallocs and frees that all are fast, and have memory to give back (heap/decay.h). */
void slow_now_and_then(void);
static inline void slow_if_unmanaged(void)
{
    if (unlikely(heap_is_unmanaged()))
        slow_now_and_then();
}

/* Opens the fast paths.  The span lock is held, if there are other threads. */
void fast_paths_open(void);
/* Suspend closes them while a child of vfork lives, and resume opens them again; children are counted.  Forget opens
 * them in a forked child: the vforks of its parent's threads do not concern it. */
void fast_paths_suspend(void);
void fast_paths_resume(void);
void fast_paths_forget(void);
/* In a child that has not allocated yet its first malloc is to come the slow way, which opens them again. */
void fast_paths_shut_malloc(void);
void fast_paths_open_again(void);

/* ---- blocks by address (lookup.c) ---- */

enum block_kind {
    block_invalid,
    block_free, /* memory of ours that holds no block: most likely one that was freed */
    block_superblock,
    block_large,
    block_mapping,
    block_signal_safe,
    block_quarantined
};

static inline bool block_is_valid(enum block_kind kind)
{
    return kind > block_free;
}

struct block {
    enum block_kind kind;
    struct superblock *superblock; /* block_superblock, block_quarantined */
    size_t bytes;                  /* usable; BYTES_UNKNOWN for a mapping, in a signal handler, now and then */
    const char *reason;            /* block_invalid */
};

/* What `p` points to the start of. */
struct block block_find(const void *p);

/* Usable bytes of a block of a superblock, as far as a quick look tells; else 0. */
static inline size_t block_bytes_quick(const void *p)
{
    const struct superblock *s = superblock_at(p);
    if (unlikely(s == NULL))
        return 0;
    return superblock_is_block_quick(s, p) ? s->block_bytes : 0;
}

/* "sutler: FUNCTION(): invalid pointer P (reason)"; aborts unless SUTLER_ON_ERROR=report. */
void report_invalid(const char *function, const void *p, const char *reason);
/* The line for a block that is not valid. */
void report_block(const char *function, const void *p, struct block block);
void report_double_free(const char *function, const void *p);
/* "sutler: FUNCTION(): WHAT P (REASON)"; the same. */
void report_misuse(const char *function, const char *what, const void *p, const char *reason);
#ifdef SUTLER_HARDENED
struct line;
/* Adds to a line what is known of the block, if that is asked for (hardened/report.c). */
void report_more(struct line *line, const void *p);
#endif

/* ---- allocation in C, for everything but the two fast paths ---- */

/* Blocks up to this size are sooner cleared than looked for among those that are zero. */
#define CLEARED_BYTES_MAX 8192u

/* Memory of any content, any size, any power-of-two alignment; NULL (errno untouched) without memory.  The hardened
 * library has another `allocate` above the plain one (hardened/malloc.c). */
void *allocate_plain(size_t size, size_t alignment, bool *zero);
#ifdef SUTLER_HARDENED
void *allocate(size_t size, size_t alignment, bool *zero);
#else
static inline void *allocate(size_t size, size_t alignment, bool *zero)
{
    return allocate_plain(size, alignment, zero);
}
#endif
/* The same with errno = ENOMEM. */
void *allocate_or_enomem(size_t size, size_t alignment, bool *zero);
/* Resizes a large block, valid and in use, that can neither grow in place nor be copied to a larger one.  NULL without
 * memory. */
void *resize_last_resort(void *p, size_t size);
/* Bytes a block of such a request really has; 0 if there can be none. */
size_t good_size(size_t size, size_t alignment);

/* A block stays where it is if the new size fits and does not leave more than half of it unused. */
static inline bool block_fits(size_t bytes, size_t size)
{
    return size <= bytes && (size >= bytes / 2 || bytes <= 64);
}

/* Exports a function of this file under another name as well.  (An alias would have to repeat all attributes that
 * libc's headers give the first.) */
#define ALSO(name, function)                                                                                           \
    __asm__(".globl " #name "\n\t.type " #name ", %function\n\t.set " #name ", " #function);

/* malloc and the others, whoever else defines functions of these names: a library that wraps ours, and puts a header
 * before its blocks, calls realloc(NULL, n) for a block without one.  (reallocarray calls realloc by its name, as
 * glibc's does, for those who wrap that and not this.) */
void *sutler_malloc(size_t size);
void sutler_free(void *p);
void *sutler_realloc(void *p, size_t size);
size_t sutler_usable_size(void *p);

/* As allocate_or_enomem, of any content; by malloc's fast path, if the blocks of a class are aligned so. */
static inline void *allocate_aligned(size_t size, size_t alignment)
{
    bool zero;
#ifndef SUTLER_HARDENED /* its malloc would take what is added for a part of the request */
    if (likely(size_class_exists(size, alignment)))
        return sutler_malloc(size_of_aligned(size, alignment));
#endif
    return allocate_or_enomem(size, alignment, &zero);
}

#ifdef SUTLER_HARDENED
/* free without any of the hardened library's checks. */
void plain_free(void *p);
/* Before memory is given back, or refused: whatever is in quarantine leaves it.  True if there was anything. */
bool quarantine_release_everything(void);
/* In the child of a fork: it is whole again. */
void quarantine_recover(void);
#else
static inline void quarantine_recover(void)
{
}

static inline bool quarantine_release_everything(void)
{
    return false;
}
#endif

#endif
