/* SPDX-License-Identifier: MIT
 *
 * Why: an engine drives a malloc library it knows nothing about.  By default that is whatever follows it in the
 * loader's order (the C library's malloc, or a library preloaded after the engine); SUTLER_ENGINE_BACKEND=/path/lib.so
 * opens one by path.  (thesis 6: dlsym finds "the next occurrence of a particular function".)
 *
 * Start-up recursion: dlsym and dlopen allocate, and what they call arrives in our malloc before there is a backend.
 * Such requests are served from a static area by a bump pointer.  Its blocks are few, live long and are never reused:
 * free() ignores them, realloc() copies them out.  Each is preceded by its size.  The area is far larger than dlopen of
 * a library with C++ constructors needs (libstdc++ alone takes 72 KiB at start); untouched pages of it cost nothing.
 *
 * What it leaves out: a backend opened by path keeps its own calls of malloc bound to the program's malloc, that is to
 * the engine.  That is harmless (every pointer is the backend's), it only takes the long way.
 */
#include "backend.h"
#include "fork_guard.h"
#include "say.h"

#include <dlfcn.h>

#define EARLY_BYTES ((size_t)1 << 20)

struct backend backend;
static uint32_t open_state; /* 0 closed, 1 being opened, 2 open */

static _Alignas(64) unsigned char early_area[EARLY_BYTES];
static size_t early_used;

void *early_allocate(size_t alignment, size_t size)
{
    if (alignment < 16)
        alignment = 16;
    if (size > EARLY_BYTES / 2 || alignment > EARLY_BYTES / 4)
        return NULL;
    size_t room = 16 + size + alignment;
    size_t at = __atomic_fetch_add(&early_used, room, __ATOMIC_RELAXED);
    if (at > EARLY_BYTES - room)
        return NULL;
    uintptr_t block = ((uintptr_t)early_area + at + 16 + alignment - 1) & ~(uintptr_t)(alignment - 1);
    ((size_t *)block)[-1] = size;
    return (void *)block;
}

bool early_owns(const void *block)
{
    return (uintptr_t)block - (uintptr_t)early_area < EARLY_BYTES;
}

size_t early_size(const void *block)
{
    return ((const size_t *)block)[-1];
}

static void *entry_of(void *handle, const char *name, const char *engine_name)
{
    void *function = dlsym(handle, name);
    if (function == NULL) {
        engine_say("the backend has no %s(); the %s engine cannot drive it", name, engine_name);
        engine_die();
    }
    return function;
}

void backend_open(const char *engine_name, struct backend (*over)(struct backend found))
{
    uint32_t closed = 0;
    if (!__atomic_compare_exchange_n(&open_state, &closed, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    void *handle = RTLD_NEXT;
    const char *path = engine_option("SUTLER_ENGINE_BACKEND");
    if (path != NULL) {
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL) {
            engine_say("SUTLER_ENGINE_BACKEND: %s", dlerror());
            engine_say("if it is about static TLS: preload it after the engine instead, or set "
                       "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=8192");
            engine_die();
        }
    }
    struct backend found;
    *(void **)&found.malloc = entry_of(handle, "malloc", engine_name);
    *(void **)&found.free = entry_of(handle, "free", engine_name);
    *(void **)&found.calloc = entry_of(handle, "calloc", engine_name);
    *(void **)&found.realloc = entry_of(handle, "realloc", engine_name);
    *(void **)&found.posix_memalign = entry_of(handle, "posix_memalign", engine_name);
    *(void **)&found.usable = entry_of(handle, "malloc_usable_size", engine_name);
    backend = over(fork_guard_over(found));
    STORE(&open_state, 2);
}

bool backend_is_open(void)
{
    return LOAD(&open_state) == 2;
}
