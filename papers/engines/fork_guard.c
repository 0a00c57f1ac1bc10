/* SPDX-License-Identifier: MIT
 *
 * Why: see fork_guard.h.
 */
#include "fork_guard.h"
#include "around.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS 100000000
#define NAP_NS  100000

static struct backend below;
static __thread int64_t until_ns __attribute__((tls_model("initial-exec"))); /* for the forks under way; 0: did not wait */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wait_for_forks(void)
{
    struct timespec nap = {0, NAP_NS}; /* some take twice as long */
    int saved = errno;
    if (until_ns == 0)
        until_ns = now_ns() + WAIT_NS;
    while (fork_is_under_way() && now_ns() < until_ns)
        syscall(SYS_nanosleep, &nap, NULL);
    errno = saved;
}

static inline void stay_outside(void)
{
    if (LIKELY(!fork_is_under_way()))
        until_ns = 0;
    else if (engine_bypass == 0)
        wait_for_forks();
}

static void *guarded_malloc(size_t size)
{
    stay_outside();
    return below.malloc(size);
}

static void guarded_free(void *block)
{
    stay_outside();
    below.free(block);
}

static void *guarded_calloc(size_t count, size_t size)
{
    stay_outside();
    return below.calloc(count, size);
}

static void *guarded_realloc(void *block, size_t size)
{
    stay_outside();
    return below.realloc(block, size);
}

static int guarded_posix_memalign(void **result, size_t alignment, size_t size)
{
    stay_outside();
    return below.posix_memalign(result, alignment, size);
}

/* Whoever registers handlers names the C library's function for it. */
static bool has_fork_handlers(const void *function)
{
    Dl_info info;
    struct link_map *library;
    const char *names = NULL;
    size_t bytes = 0;
    if (dladdr1(function, &info, (void **)&library, RTLD_DL_LINKMAP) == 0)
        return true;
    for (const ElfW(Dyn) *entry = library->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            names = (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_STRSZ)
            bytes = entry->d_un.d_val;
    }
    return names == NULL || memmem(names, bytes, "_atfork", sizeof "_atfork") != NULL;
}

struct backend fork_guard_over(struct backend found)
{
    if (has_fork_handlers(*(void **)&found.malloc))
        return found;
    below = found;
    return (struct backend){.malloc = guarded_malloc,
                            .free = guarded_free,
                            .calloc = guarded_calloc,
                            .realloc = guarded_realloc,
                            .posix_memalign = guarded_posix_memalign,
                            .usable = found.usable};
}
