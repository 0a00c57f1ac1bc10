/* SPDX-License-Identifier: MIT
 *
 * Why: the whole malloc surface, once for all engines.  A program is at any time in one of three phases: no backend yet
 * (the start-up area serves), a backend but not our constructor yet (the backend serves: it is too early for threads
 * and atfork), running (the engine serves).  Because a block is always the backend's own (engine.h) the phases pass
 * into each other with nothing to convert.
 *
 * realloc: the thesis's listing allocates and copies but never frees the old block, and after freeing for size 0 goes
 * on to allocate.  Here: size 0 frees and returns NULL (as glibc does); a new size the block can hold, down to half of
 * it, stays in place; two large sizes are the backend's business; everything else is allocate, copy, release the old
 * block.
 *
 * Left out: children made by raw clone or _Fork (no handlers run, such a child has no manager and waits for one), and
 * malloc from signal handlers (the papers do without, and POSIX forbids it).
 */
#include "around.h"
#include "backend.h"
#include "checks.h"
#include "engine.h"
#include "thread.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_power_of_two(size_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

/* True when there is a backend.  Not inlined: the way off the fast path. */
static __attribute__((noinline)) bool backend_ready_slow(void)
{
    backend_open(engine.name, checks_over);
    return backend_is_open();
}

static inline bool backend_ready(void)
{
    return LIKELY(LOAD_RELAXED(&engine_running)) || backend_is_open() || backend_ready_slow();
}

static __attribute__((noinline)) bool through_engine_at_last(void)
{
    if (LOAD_RELAXED(&engine_running) && engine_bypass == ENGINE_NEWCOMER)
        thread_enters();
    return LOAD_RELAXED(&engine_running) && engine_bypass == 0;
}

static inline bool through_engine(void)
{
    return LIKELY(LOAD_RELAXED(&engine_running) && engine_bypass == 0) || through_engine_at_last();
}

/* errno: it may be another thread that failed, and its errno that was set; and not every backend sets it (mimalloc). */
static inline void *or_enomem(void *block)
{
    if (UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

static void *allocate(size_t size)
{
    if (UNLIKELY(!through_engine()))
        return or_enomem(backend.malloc(size));
    if (size > engine.largest) {
        if (engine.large != NULL)
            engine.large();
        return or_enomem(backend.malloc(size));
    }
    return or_enomem(engine.allocate(size | (size == 0)));
}

static void release(void *block)
{
    int saved = errno;
    if (LIKELY(through_engine() || (LOAD_RELAXED(&engine_running) && engine.release_always)))
        engine.release(block);
    else
        backend.free(block);
    errno = saved;
}

static __attribute__((noinline)) void *malloc_slow(size_t size)
{
    if (UNLIKELY(!backend_ready()))
        return early_allocate(16, size);
    void *block = allocate(size);
    return UNLIKELY(checks_inline) ? checks_allocated(block, size) : block;
}

EXPORT void *malloc(size_t size)
{
    if (UNLIKELY(size - 1 >= engine.largest || !through_engine() || checks_inline))
        return malloc_slow(size);
    return or_enomem(engine.allocate(size));
}

static void release_checked(const char *function, void *block)
{
    if (UNLIKELY(checks_inline) && !checks_released(function, block))
        return;
    release(block);
}

static __attribute__((noinline)) void free_slow(void *block)
{
    if (UNLIKELY(!backend_ready())) /* not ours, and nobody to give it to: a pointer from before this library */
        return;
    release_checked("free", block);
}

EXPORT void free(void *block)
{
    if (block == NULL || UNLIKELY(early_owns(block)))
        return;
    if (engine.keeps_errno && LIKELY(through_engine() && !checks_inline))
        engine.release(block);
    else
        free_slow(block);
}

/* A backend may bring these (C23, old glibc); they must not go past the engine. */
EXPORT void free_sized(void *block, size_t size);
EXPORT void free_sized(void *block, size_t size)
{
    (void)size;
    free(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    (void)alignment;
    (void)size;
    free(block);
}

static void *allocate_zeroed(size_t size)
{
    if (size <= engine.largest && through_engine()) {
        if (engine.allocate_zeroed != NULL)
            return engine.allocate_zeroed(size | (size == 0));
        void *block = engine.allocate(size | (size == 0));
        return block != NULL ? memset(block, 0, size) : NULL;
    }
    if (engine.large != NULL && through_engine())
        engine.large();
    return backend.calloc(1, size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    if (UNLIKELY(!backend_ready()))
        return early_allocate(16, bytes); /* static memory, used once: zero */
    void *block = or_enomem(allocate_zeroed(bytes));
    return UNLIKELY(checks_inline) ? checks_allocated_zeroed(block, bytes) : block;
}

EXPORT void *realloc(void *block, size_t size)
{
    if (block == NULL)
        return malloc(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    if (UNLIKELY(early_owns(block) || !backend_ready())) {
        size_t held = early_owns(block) ? early_size(block) : 0;
        void *fresh = malloc(size);
        return fresh != NULL ? memcpy(fresh, block, held < size ? held : size) : NULL;
    }
    if (UNLIKELY(checks_inline) && !checks_known("realloc", block))
        return NULL;
    size_t held = backend.usable(block);
    if (!checks_inline) {
        if (size <= held && size >= held / 2)
            return block;
        if (held > ENGINE_LARGE_BLOCK && size > ENGINE_LARGEST)
            return or_enomem(backend.realloc(block, size));
    }
    void *fresh = malloc(size);
    if (fresh == NULL)
        return NULL;
    memcpy(fresh, block, held < size ? held : size);
    release_checked("realloc", block);
    return fresh;
}

EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

/* Aligned requests are the backend's; no engine of the papers prepares blocks for them. */
static int allocate_aligned(void **result, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if (UNLIKELY(!backend_ready())) {
        *result = early_allocate(alignment, size);
        return *result != NULL ? 0 : ENOMEM;
    }
    void *block = NULL;
    int saved = errno;
    int error = backend.posix_memalign(&block, alignment, size);
    errno = saved;
    if (error == 0)
        *result = UNLIKELY(checks_inline) ? checks_allocated(block, size) : block;
    return error;
}

static void *aligned_or_null(size_t alignment, size_t size)
{
    void *block = NULL;
    int error = allocate_aligned(&block, alignment, size);
    if (error != 0)
        errno = error;
    return block;
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0)
        return EINVAL;
    return allocate_aligned(result, alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return aligned_or_null(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    if (alignment > PTRDIFF_MAX) {
        errno = EINVAL;
        return NULL;
    }
    size_t power = sizeof(void *); /* as glibc: the next power of two */
    while (power < alignment)
        power *= 2;
    return aligned_or_null(power, size);
}

EXPORT void *valloc(size_t size)
{
    return aligned_or_null((size_t)sysconf(_SC_PAGESIZE), size);
}

EXPORT void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > PTRDIFF_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    return aligned_or_null(page, (size + page - 1) & ~(page - 1));
}

EXPORT size_t malloc_usable_size(void *block)
{
    if (block == NULL)
        return 0;
    if (UNLIKELY(early_owns(block)))
        return early_size(block);
    if (UNLIKELY(!backend_ready()) || (UNLIKELY(checks_inline) && !checks_known("malloc_usable_size", block)))
        return 0;
    return backend.usable(block);
}
