/* SPDX-License-Identifier: MIT
 *
 * Why: C++ operators usually arrive by themselves, because libstdc++'s call malloc.  Not so when the backend is a
 * library preloaded after the engine that brings operators of its own (jemalloc, mimalloc, tcmalloc, Sutler all do): it
 * would then serve C++ programs past the engine.  So they are defined here, under their mangled names to need no C++
 * library; when memory runs out the call is handed to the next definition, which knows how to call the new handler, to
 * throw, and (nothrow) to swallow what the handler throws.
 */
#include "base.h"
#include "say.h"

#include <dlfcn.h>
#include <stdlib.h>

struct nothrow;

static __attribute__((noinline, cold)) void *next_new(const char *name, size_t size)
{
    void *(*next)(size_t) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, name);
    if (next == NULL)
        engine_die();
    return next(size);
}

static __attribute__((noinline, cold)) void *next_aligned_new(const char *name, size_t size, size_t alignment)
{
    void *(*next)(size_t, size_t) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, name);
    if (next == NULL)
        engine_die();
    return next(size, alignment);
}

#define DEFINE_NEW(name)                                                                                               \
    EXPORT void *name(size_t size);                                                                                    \
    EXPORT void *name(size_t size)                                                                                     \
    {                                                                                                                  \
        void *block = malloc(size);                                                                                    \
        return LIKELY(block != NULL) ? block : next_new(#name, size);                                                  \
    }
#define DEFINE_NOTHROW_NEW(name)                                                                                       \
    EXPORT void *name(size_t size, const struct nothrow *tag);                                                         \
    EXPORT void *name(size_t size, const struct nothrow *tag)                                                          \
    {                                                                                                                  \
        void *block = malloc(size);                                                                                    \
        void *(*next)(size_t, const struct nothrow *) = NULL;                                                          \
        if (LIKELY(block != NULL))                                                                                     \
            return block;                                                                                              \
        *(void **)&next = dlsym(RTLD_NEXT, #name);                                                                     \
        return next != NULL ? next(size, tag) : NULL;                                                                  \
    }
#define DEFINE_ALIGNED_NEW(name)                                                                                       \
    EXPORT void *name(size_t size, size_t alignment);                                                                  \
    EXPORT void *name(size_t size, size_t alignment)                                                                   \
    {                                                                                                                  \
        void *block = aligned_alloc(alignment, size);                                                                  \
        return LIKELY(block != NULL) ? block : next_aligned_new(#name, size, alignment);                               \
    }
#define DEFINE_ALIGNED_NOTHROW_NEW(name)                                                                               \
    EXPORT void *name(size_t size, size_t alignment, const struct nothrow *tag);                                       \
    EXPORT void *name(size_t size, size_t alignment, const struct nothrow *tag)                                        \
    {                                                                                                                  \
        void *block = aligned_alloc(alignment, size);                                                                  \
        void *(*next)(size_t, size_t, const struct nothrow *) = NULL;                                                  \
        if (LIKELY(block != NULL))                                                                                     \
            return block;                                                                                              \
        *(void **)&next = dlsym(RTLD_NEXT, #name);                                                                     \
        return next != NULL ? next(size, alignment, tag) : NULL;                                                       \
    }
#define DEFINE_DELETE(name, ...)                                                                                       \
    EXPORT void name(void *block, ##__VA_ARGS__);                                                                      \
    EXPORT void name(void *block, ##__VA_ARGS__)                                                                       \
    {                                                                                                                  \
        free(block);                                                                                                   \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

DEFINE_NEW(_Znwm)
DEFINE_NEW(_Znam)
DEFINE_NOTHROW_NEW(_ZnwmRKSt9nothrow_t)
DEFINE_NOTHROW_NEW(_ZnamRKSt9nothrow_t)
DEFINE_ALIGNED_NEW(_ZnwmSt11align_val_t)
DEFINE_ALIGNED_NEW(_ZnamSt11align_val_t)
DEFINE_ALIGNED_NOTHROW_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t)
DEFINE_ALIGNED_NOTHROW_NEW(_ZnamSt11align_val_tRKSt9nothrow_t)
DEFINE_DELETE(_ZdlPv)
DEFINE_DELETE(_ZdaPv)
DEFINE_DELETE(_ZdlPvm, size_t size)
DEFINE_DELETE(_ZdaPvm, size_t size)
DEFINE_DELETE(_ZdlPvRKSt9nothrow_t, const struct nothrow *tag)
DEFINE_DELETE(_ZdaPvRKSt9nothrow_t, const struct nothrow *tag)
DEFINE_DELETE(_ZdlPvSt11align_val_t, size_t alignment)
DEFINE_DELETE(_ZdaPvSt11align_val_t, size_t alignment)
DEFINE_DELETE(_ZdlPvmSt11align_val_t, size_t size, size_t alignment)
DEFINE_DELETE(_ZdaPvmSt11align_val_t, size_t size, size_t alignment)
DEFINE_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, size_t alignment, const struct nothrow *tag)
DEFINE_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, size_t alignment, const struct nothrow *tag)
