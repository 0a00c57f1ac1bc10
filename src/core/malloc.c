/* SPDX-License-Identifier: MIT
 *
 * malloc, behind its fast path.
 *
 * Follow a malloc: hot_x86_64.S finds the class and pops a block from the active superblock of the heap that belongs to
 * the running cid.  If that list is empty it comes here, to malloc_slow: the heap is locked, given an active superblock
 * with blocks (heap/refill.c), and the pop is tried again.  Sizes above the largest class come through malloc_any:
 * their blocks are spans or mappings (heap/large.c).
 *
 * In lock mode the fast path is switched off (its limits are zero) and every call comes here, to malloc_any, which
 * has another one (locked.h).
 */
#include <errno.h>
#include <stdint.h>

#include "core/child.h"
#include "core/core.h"
#include "core/locked.h"
#include "heap/inherited.h"
#include "heap/signal_safe.h"
#include "heap/large.h"
#include "heap/pass.h"
#include "heap/purge.h"
#include "os/os.h"

/* Rounds of refilling and popping before sections are given up on: each fails by chance only if the thread is moved or
 * interrupted within it, or others of its cid take all that was found. */
#define TRIES_MAX 5

/* The heap of where the thread runs, brought along if it was moved; NULL without memory. */
static struct heap *own_heap(void)
{
    struct heap *h = heap_here();
    return h != NULL && !rcs_is_suspended() ? heap_rebind_after_migration(h) : h;
}

static void *take_locked(unsigned c)
{
    struct heap *h = heap_here();
    if (h == NULL)
        return NULL;
    lock_take(&h->lock);
    void *block = pop_under_lock(h, c);
    lock_release(&h->lock);
    if (likely(block != NULL) || (h = own_heap()) == NULL)
        return block;
    lock_take(&h->lock);
    while ((block = pop_under_lock(h, c)) == NULL && heap_refill(h, c) != refill_exhausted)
        ;
    lock_release(&h->lock);
    return block;
}

static void *take_by_section(unsigned c)
{
    if (rcs_is_suspended())
        return heap_take_unbound(c);
    for (int i = 0; i < TRIES_MAX; i++) {
        struct heap *h = own_heap();
        if (h == NULL)
            return NULL;
        lock_take(&h->lock);
        enum refill refill = heap_refill(h, c);
        lock_release(&h->lock);
        if (refill == refill_exhausted)
            return NULL;
        if (unlikely(refill == refill_aborted))
            break;
        void *block = hot_pop(c);
        if (block != NULL)
            return block;
    }
    struct heap *h = heap_here();
    if (h == NULL)
        return NULL;
    lock_take(&h->lock);
    void *block = heap_take_detached(h, c);
    lock_release(&h->lock);
    return block;
}

/* One try. */
static void *pop(unsigned c)
{
    if (sync_mode != sync_rcs)
        return locked_pop(c);
    return rcs_is_suspended() ? NULL : hot_pop(c);
}

/* ---- before memory is refused ---- */

/* What could not be had in the usual way. */
struct wanted {
    unsigned class; /* CLASS_COUNT: a large block */
    size_t size, alignment;
    bool zero;
    void *block; /* a large block that is to have `size` bytes; NULL: another one is wanted */
};

static void *squeeze(struct wanted *w)
{
    if (w->block != NULL)
        return large_resize(w->block, w->size, true);
    if (w->class < CLASS_COUNT)
        return heap_take_wherever(heap_here(), w->class);
    return large_squeeze(w->size, w->alignment, &w->zero);
}

/* Refused is only what nothing in a row is free for: neither as things lie, nor when freed mappings are unmapped, nor
 * when superblocks have become spans or lent what is free of them.  The last look is one while nobody else, a manager,
 * has any of it in hand to give it back. */
static COLD void *take_last_resort(struct wanted *w)
{
    void *block = squeeze(w);
    if (block == NULL) {
        heap_make_room(room_of_mappings, w->size);
        block = squeeze(w);
    }
    if (block == NULL && large_may_lie_free(w->size)) {
        heap_make_room(room_everywhere, w->block == NULL ? w->size : 1);
        pass_begin();
        block = squeeze(w);
        pass_end();
    }
    return block;
}

void *resize_last_resort(void *p, size_t size)
{
    struct wanted w = {.class = CLASS_COUNT, .size = size, .block = p};
    if (!slow_enter())
        return NULL;
    void *block = take_last_resort(&w);
    slow_leave();
    return block;
}

/* ---- taking ---- */

/* A block of class `c`, aligned as all of them are, or NULL without memory. */
static void *take_slow(unsigned c)
{
    if (!slow_enter())
        return signal_safe_take(size_class[c].bytes, size_class_alignment(c));
    void *block = sync_mode == sync_rcs ? take_by_section(c) : take_locked(c);
    if (unlikely(block == NULL))
        block = take_last_resort(&(struct wanted){.class = c, .size = size_class[c].bytes});
    slow_leave_and_hint(slow_took);
    return block;
}

/* A block nobody has had yet, all zero; NULL if the next one would not be, or this thread must not wait for locks. */
static void *take_fresh(unsigned c)
{
    void *block = NULL;
    if (!slow_enter())
        return NULL;
    struct heap *h = own_heap();
    if (h != NULL) {
        lock_take(&h->lock);
        block = heap_take_fresh(h, c);
        lock_release(&h->lock);
    }
    slow_leave();
    return block;
}

/* A large block that was kept for this cid, the short way; NULL if there is none. */
static inline void *take_kept(size_t size, size_t alignment)
{
    if (!core_ready() || !child_is_noticed())
        return NULL;
    const bool was = short_way_begin();
    void *block = large_take_kept(size, alignment);
    short_way_end(was);
    return block;
}

/* A large block, the long way. */
static void *take_large(size_t size, size_t alignment, bool *zero)
{
    if (!slow_enter())
        return signal_safe_take(size, alignment);
    void *block = large_take(size, alignment, zero);
    if (unlikely(block == NULL)) {
        struct wanted w = {.class = CLASS_COUNT, .size = size, .alignment = alignment};
        block = take_last_resort(&w);
        *zero = w.zero;
    }
    slow_leave_and_hint(slow_took);
    return block;
}

static bool may_be_had(size_t size, size_t alignment)
{
    return likely(size <= PTRDIFF_MAX && alignment <= PTRDIFF_MAX - size) && core_ready();
}

/* By the first malloc after a fork, which finds the fast paths shut: sets aside what the heap was allocating from. */
static COLD void set_aside_inherited(void)
{
    if (rcs_is_suspended() || !slow_enter())
        return;
    if (atomic_exchange(&inherited_is_active, false)) {
        struct heap *h = own_heap();
        if (h != NULL) {
            lock_take(&h->lock);
            inherited_set_aside(h);
            lock_release(&h->lock);
        }
        fast_paths_open_again();
    }
    slow_leave();
}

void *allocate_plain(size_t size, size_t alignment, bool *zero)
{
    *zero = false;
    if (!may_be_had(size, alignment))
        return NULL;
    if (unlikely(atomic_load_explicit(&inherited_is_active, memory_order_relaxed)))
        set_aside_inherited();
    unsigned c = size_class_of_aligned(size, alignment);
    if (c < CLASS_COUNT) {
        void *block = pop(c);
        if (block == NULL && size_class[c].bytes > CLEARED_BYTES_MAX)
            *zero = (block = take_fresh(c)) != NULL;
        return block != NULL ? block : take_slow(c);
    }
    void *block = take_kept(size, alignment);
    return block != NULL ? block : take_large(size, alignment, zero);
}

size_t good_size(size_t size, size_t alignment)
{
#ifdef SUTLER_HARDENED
    return max_size(size, 1); /* a block has as many as were asked for */
#endif
    unsigned c = size_class_of_aligned(size, alignment);
    if (c < CLASS_COUNT)
        return size_class[c].bytes;
    core_ready(); /* learns the page size */
    size_t bytes = align_up(size, size < MAPPING_BYTES_MIN ? SLICE_BYTES : os_page_bytes);
    return bytes < size ? 0 : bytes;
}

void *allocate_or_enomem(size_t size, size_t alignment, bool *zero)
{
    void *block = allocate(size, alignment, zero);
    if (unlikely(block == NULL))
        errno = ENOMEM;
    return block;
}

NOINLINE void *malloc_slow(size_t c)
{
    void *block = take_slow((unsigned)c);
    if (unlikely(block == NULL))
        errno = ENOMEM;
    return block;
}

/* Before initialisation, or in lock mode, where the short way has failed. */
static NOINLINE void *malloc_otherwise(size_t size)
{
    bool zero;
    return allocate_or_enomem(size, BLOCK_ALIGNMENT, &zero);
}

static NOINLINE void *malloc_large(size_t size)
{
    bool zero;
    void *block = may_be_had(size, BLOCK_ALIGNMENT) ? take_large(size, BLOCK_ALIGNMENT, &zero) : NULL;
    if (unlikely(block == NULL))
        errno = ENOMEM;
    return block;
}

/* Above the largest class; or before initialisation, or in lock mode, any size. */
void *malloc_any(size_t size)
{
    if (size > CLASS_BYTES_MAX) {
        void *block = take_kept(size, BLOCK_ALIGNMENT);
        return likely(block != NULL) ? block : malloc_large(size);
    }
    void *block = locked_take(size);
    return block != NULL ? block : malloc_otherwise(size);
}
