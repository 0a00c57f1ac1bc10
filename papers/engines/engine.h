/* SPDX-License-Identifier: MIT
 *
 * Why: the papers' allocators differ in one thing only, in what happens between a request and an unmodified malloc
 * library below them.  What does not differ is owned once: the malloc entry surface (entry.c), finding that library
 * (backend.c), start and fork (start.c), the end of threads (thread.c), the second thread's life (manager.c).  An
 * engine is one `struct engine`, and this is all of the contract.
 *
 * The one decision everything rests on: **a block handed to the program is a block of the backend, exactly as the
 * backend returned it**.  The thesis (6.3) puts a header before each block to find its bin again, and with it comes the
 * question whose pointer a pointer is: one from before start-up, one from memalign, one from a thread that had to go
 * around the engine.  Here the bin of a freed block is read from the backend's own malloc_usable_size (a block of n
 * usable bytes can serve any bin of at most n), so every pointer may be given to the backend at any time, going around
 * the engine is always correct, and no byte is added to a block.  Every library this drives has that function (glibc,
 * jemalloc, mimalloc, tcmalloc, Scudo, Sutler); one that lacks it is refused at start with a message.  The only
 * pointers that are not the backend's are those of the start-up area (backend.c), recognised by their address.
 *
 * Rules for engines:
 *  - No lock of an engine is held while the backend is called from a program's thread.
 *  - The manager's own calls of malloc and free (a backend may make some) go around the engine: `engine_bypass`.
 *  - The manager is started lazily, outside of any lock; while there is none, requests go to the backend.
 *  - Nothing spins without bound: brief spinning (none with one cpu), then a futex or a yield.
 *  - Nobody waits for the manager, or finds a lock held, because a fork is under way (around.h).
 */
#ifndef ENGINES_ENGINE_H
#define ENGINES_ENGINE_H

#include "base.h"

struct engine_counts;

/* Requests above ENGINE_LARGEST go to the backend directly; so do freed blocks with more usable bytes than
 * ENGINE_LARGE_BLOCK: they are rare, and holding back some hundreds of freed blocks of any size would be a leak.  The
 * gap between the two is room for what a backend rounds up: no block that an engine prepared counts as large. */
#define ENGINE_LARGEST     ((size_t)32 * 1024)
#define ENGINE_LARGE_BLOCK ((size_t)64 * 1024)

struct engine {
    const char *name;
    size_t largest;      /* greatest size given to allocate() */
    bool keeps_errno;    /* release() does; around that of others the entry layer saves it */
    bool runs_functions; /* of the program's: a manager's stack is as large as any thread's */
    bool release_always; /* release() never waits, so it is called even where the engine is gone around */
    void (*start)(void); /* once, before anything else; the backend works, no second thread exists */
    void *(*allocate)(size_t size); /* 1 <= size <= largest; NULL: out of memory */
    void *(*allocate_zeroed)(size_t size); /* NULL: zeros are written to what allocate() gives */
    void (*release)(void *block);
    void (*large)(void);             /* a request above `largest` is about to be made; may be NULL */
    void (*manage)(void);            /* a manager's thread; returns only when no other thread is left in the process */
    void (*thread_exit)(void *mine); /* `mine` as given to engine_thread_own() */
    void (*fork_prepare)(void);
    void (*fork_parent)(void);
    void (*fork_child)(void);
    void (*counts)(struct engine_counts *counts); /* adds what the engine counts by itself; may be NULL */
};
extern const struct engine engine;

#endif
