/* SPDX-License-Identifier: MIT
 *
 * The freed block: how it is taken, pointed to and freed, and whether malloc hands it out again after a sweep.  Other
 * than the pointer that put() stores, none may be left behind, in memory or on the stack: a sweep would see it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sweep.h"

#define LARGE ((size_t)128 << 10)

size_t size = 100;
uintptr_t hidden;

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    _exit(1);
}

void expect(bool seen, const char *what)
{
    if (!seen)
        fail(what);
}

/* ---- the library ---- */

size_t (*purge)(void);
static int (*stats_get)(struct sutler_stats *, size_t);

void find_library(void)
{
    purge = (size_t(*)(void))dlsym(RTLD_DEFAULT, "sutler_purge");
    stats_get = (int (*)(struct sutler_stats *, size_t))dlsym(RTLD_DEFAULT, "sutler_stats_get");
    if (purge == NULL || stats_get == NULL)
        fail("the library is not there");
}

struct sutler_stats stats(void)
{
    struct sutler_stats s;
    if (stats_get(&s, sizeof s) != 0)
        fail("sutler_stats_get");
    return s;
}

/* ---- whether the block comes again ---- */

__attribute__((noinline)) void wash_stack(void)
{
    volatile char dirt[65536];
    for (size_t i = 0; i < sizeof dirt; i++)
        dirt[i] = 0;
}

static __attribute__((noinline)) bool is_readable(const void *p)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {(void *)p, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

__attribute__((noinline)) bool is_handed_out(void)
{
    enum { MOST = 20000 };
    static uintptr_t taken[MOST];
    static size_t most, size_before;
    const size_t more = size > LARGE ? 16 : size > 10000 ? 300 : 2000;
    most = size == size_before ? most + more : more; /* all that was taken the last time, and more */
    size_before = size;
    bool found = false;
    size_t count = 0;
    purge();
    if (size > LARGE && is_readable((void *)~hidden))
        return true;
    while (count < most && count < MOST && !found) {
        taken[count] = ~(uintptr_t)malloc(size);
        found = taken[count++] - hidden < size; /* its first byte is in the new block */
    }
    while (count > 0)
        free((void *)~taken[--count]);
    return found;
}

__attribute__((noinline)) void take_block(void)
{
    static uintptr_t taken[128]; /* of its superblock a few others are in use: it will be looked at for free blocks */
    const int count = size <= LARGE ? 128 : 2;
    for (int i = 0; i < count; i++)
        taken[i] = ~(uintptr_t)malloc(size);
    for (int i = 0; i < count; i++)
        if (i != 1 && (i % 8 != 0 || size > LARGE))
            free((void *)~taken[i]);
    hidden = taken[1];
}

__attribute__((noinline)) void free_block(void)
{
    free((void *)~hidden);
}

__attribute__((noinline)) void put(void *volatile *place, size_t offset)
{
    *place = (char *)~hidden + offset;
}

void keep_in(void *volatile *place, size_t offset)
{
    take_block();
    put(place, offset);
    free_block();
    expect_kept();
    *place = NULL;
    expect_free();
}
