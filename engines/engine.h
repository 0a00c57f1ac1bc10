/* SPDX-License-Identifier: MIT
 *
 * Why: the papers' allocators differ in one thing only, in what happens between a request and an unmodified malloc library
 * below them.  What does not differ is owned here once: the malloc entry surface, finding that library, start-up
 * recursion, fork, thread and process exit, the second thread's life.  An engine is one `struct engine`.
 *
 * The one decision everything rests on: **a block handed to the program is a block of the backend, exactly as the backend
 * returned it**.  The thesis (6.3) puts a header before each block to find its bin again, and with it comes the question
 * whose pointer a pointer is: one from before start-up, one from memalign, one from a thread that had to go around the
 * engine.  Here the bin of a freed block is read from the backend's own malloc_usable_size (a block of n usable bytes can
 * serve any bin of at most n), so every pointer may be given to the backend at any time, going around the engine is always
 * correct, and no byte is added to a block.  Every library this drives has that function (glibc, jemalloc, mimalloc,
 * tcmalloc, Scudo, Sutler); one that lacks it is refused at start with a message.  The only pointers that are not the
 * backend's are those of the start-up area (backend.c), recognised by their address.
 *
 * Rules for engines:
 *  - No lock of an engine is held while the backend is called from a program's thread.
 *  - The manager's own calls of malloc and free (a backend may make some) go around the engine: `engine_bypass`.
 *  - The manager is started lazily, outside of any lock; while there is none, requests go to the backend.
 *  - Nothing spins without bound: brief spinning (none with one cpu), then a futex or a yield.
 */
#ifndef ENGINES_ENGINE_H
#define ENGINES_ENGINE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT      __attribute__((visibility("default")))

#define LOAD(p)            __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define LOAD_RELAXED(p)    __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v)        __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define STORE_RELAXED(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define FENCE()            __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Requests above ENGINE_LARGEST go to the backend directly; so do freed blocks with more usable bytes than
 * ENGINE_LARGE_BLOCK: they are rare, and holding back some hundreds of freed blocks of any size would be a leak.  The gap
 * between the two is room for what a backend rounds up: no block that an engine prepared counts as large. */
#define ENGINE_LARGEST     ((size_t)32 * 1024)
#define ENGINE_LARGE_BLOCK ((size_t)64 * 1024)

/* What one library below looks like.  With SUTLER_CHECKS=offloaded these are the checking versions (checks.c). */
struct backend {
    void *(*malloc)(size_t size);
    void (*free)(void *block);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *block, size_t size);
    int (*posix_memalign)(void **result, size_t alignment, size_t size);
    size_t (*usable)(void *block);
};
extern struct backend backend;

/* counts.c: what is rare and dear, for the papers' analyses */
struct engine_counts {
    uint64_t messages;   /* questions to the manager whose answer a thread waited for */
    uint64_t handed;     /* freed blocks, or queues of them, given to the manager without waiting */
    uint64_t sleeps;     /* waits, of either side's, that the kernel was asked for */
    uint64_t wakes;      /* and their ends */
    uint64_t lock_waits; /* MMT designs 3 to 5: a lock that was held */
};
extern struct engine_counts engine_counts;

static inline void engine_count(uint64_t *which)
{
    __atomic_fetch_add(which, 1, __ATOMIC_RELAXED);
}

struct engine {
    const char *name;
    size_t largest;      /* greatest size given to allocate() */
    bool release_always; /* release() never waits, so it is called even where the engine is gone around */
    void (*start)(void); /* once, before anything else; the backend works, no second thread exists */
    void *(*allocate)(size_t size); /* 1 <= size <= largest; NULL: out of memory */
    void (*release)(void *block);
    size_t (*usable)(void *block);   /* NULL: the backend's */
    void (*large)(void);             /* a request above `largest` is about to be made; may be NULL */
    void (*manage)(void);            /* the manager's thread; returns only when it is alone in the process */
    void (*thread_exit)(void *mine); /* `mine` as given to engine_thread_own() */
    void (*fork_prepare)(void);
    void (*fork_parent)(void);
    void (*fork_child)(void);
    void (*counts)(struct engine_counts *counts); /* adds what the engine counts by itself; may be NULL */
};
extern const struct engine engine;

/* backend.c */
void backend_open(void);
bool backend_is_open(void);
void *early_allocate(size_t alignment, size_t size);
bool early_owns(const void *block);
size_t early_size(const void *block);
const char *engine_option(const char *name);
void engine_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void engine_die(void);

/* entry.c.  > 0: this thread's requests go around the engine. */
extern __thread int engine_bypass;
void engine_thread_own(void *mine);
void engine_ensure(void);

/* manager.c */
enum manager_state { MANAGER_ABSENT, MANAGER_STARTING, MANAGER_RUNNING, MANAGER_FAILED };
extern uint32_t manager_state;
extern bool manager_main_gone;
extern clockid_t manager_clock; /* its cpu time */
bool manager_start(void);
void manager_begin(void); /* manage() works between begin and end; a fork waits for end, sleep or checkpoint */
void manager_end(void);
void manager_checkpoint(void);
bool manager_sleep(bool (*wanted)(void)); /* false: only the manager is left, manage() must return */
bool manager_is_alone(void);
void manager_wake(void); /* after the work was published with plain stores */
void manager_pause(void);
void manager_resume(void);
void manager_forget(void);

/* True when the manager can be asked; starts it if there is none yet. */
static inline bool manager_ready(void)
{
    return LIKELY(LOAD(&manager_state) == MANAGER_RUNNING) || manager_start();
}

/* Brief spinning, then nothing: 0 where the process may run on one cpu only. */
extern unsigned engine_spins;
void engine_relax(unsigned *turn); /* one step of a wait that has no futex: spin, then yield, then sleep shortly */
void engine_wait(uint32_t *word, uint32_t value, uint32_t *waiting); /* until *word != value; `waiting`: this waiter's */
void engine_wake(uint32_t *word, const uint32_t *waiting);           /* after *word was stored */
void engine_futex_wait(uint32_t *word, uint32_t value, long ms);
void engine_futex_wake(uint32_t *word);

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
