/* SPDX-License-Identifier: MIT
 *
 * Before memory is refused: `refused CASE`.  What the library keeps has to be had from it first, and a block that
 * cannot be moved is made shorter where it is.  Run without a manager.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/allow_all.h"

#define MIB ((size_t)1 << 20)

static void expect(bool seen, const char *what)
{
    if (!seen) {
        fprintf(stderr, "FAILED: %s\n", what);
        _exit(1);
    }
}

static void limit_address_space(size_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    expect(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

static __attribute__((noinline)) void take_and_free(size_t size)
{
    char *p = malloc(size);
    expect(p != NULL, "the first block");
    free(p);
}

static __attribute__((noinline)) void wash_stack(void)
{
    volatile char dirt[65536];
    for (size_t i = 0; i < sizeof dirt; i++)
        dirt[i] = 0;
}

/* A list, so that nothing else is wanted meanwhile.  Not in line: its registers would still point to the last block. */
static __attribute__((noinline)) void *take(size_t size, size_t most)
{
    void **last = NULL, **p;
    while (most-- > 0 && (p = malloc(size)) != NULL) {
        *p = last;
        last = p;
    }
    return last;
}

static void *exhaust(size_t size)
{
    return take(size, SIZE_MAX);
}

static void give(void *list)
{
    for (void **p = list, **next; p != NULL; p = next) {
        next = *p;
        free(p);
    }
}

/* There is address space for one of them at a time. */
static void one_after_the_other(void)
{
    take_and_free(1024 * MIB);
    wash_stack();
    void *q = malloc(1536 * MIB);
    expect(q != NULL, "a mapping that was just freed and kept is given back before memory is refused");
    free(q);
}

static __attribute__((noinline)) void free_first(void **list)
{
    void **first = *list;
    *list = *first;
    free(first);
}

static size_t address_space(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    expect(file != NULL && fscanf(file, "%zu", &pages) == 1, "statm");
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* So little that what keeps it is not full.  By then there have been sweeps, which have the memory that they take. */
static void little(void)
{
    give(take(6 * MIB, 40));
    malloc_trim(0);
    limit_address_space(address_space() + MIB);
    void *list = exhaust(6 * MIB);
    expect(list != NULL, "blocks");
    free_first(&list);
    wash_stack();
    void *p = malloc(6 * MIB);
    expect(p != NULL, "a block that was just freed and kept is given back before memory is refused");
    free(p);
    give(list);
}

static __attribute__((noinline)) void free_oldest(void **list)
{
    void **link = list; /* to the block: the list itself, or the first word of the one before */
    while (*(void **)*link != NULL)
        link = *link;
    free(*link);
    *link = NULL;
}

/* By the time the limit is reached, the heap is much larger than at the last sweep, and there is no memory for the
 * marks of all of it. */
static void grown(void)
{
    give(take(6 * MIB, 8));
    malloc_trim(0);
    limit_address_space(address_space() + 400 * MIB);
    void *list = exhaust(6 * MIB);
    expect(list != NULL, "blocks");
    free_oldest(&list);
    wash_stack();
    void *p = malloc(6 * MIB);
    expect(p != NULL, "a block that was marked the last time is given back before memory is refused");
    free(p);
    give(list);
}

static void swept(void)
{
    limit_address_space(2048 * MIB);
    one_after_the_other();
}

static void filtered(void)
{
    limit_address_space(2048 * MIB);
    expect(install_allow_all_filter(), "a filter can be installed");
    one_after_the_other();
}

static bool is_filled(const unsigned char *p, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (p[i] != (unsigned char)(i * 7 + 1))
            return false;
    return true;
}

/* Of a large block that becomes small, while there is no small one to copy it to. */
static void shrinks(size_t from, size_t to)
{
    unsigned char *p = malloc(from);
    expect(p != NULL, "a large block");
    for (size_t i = 0; i < from; i++)
        p[i] = (unsigned char)(i * 7 + 1);
    void *all[] = {exhaust(MIB), exhaust(65536), exhaust(4000), exhaust(200), exhaust(50)};
    expect(malloc(to) == NULL, "there is no memory left");
    errno = 0;
    unsigned char *q = realloc(p, to);
    expect(q != NULL && errno == 0, "a block that becomes smaller is not refused");
    expect(malloc_usable_size(q) == to && is_filled(q, to), "it has its new size and its content");
    q = realloc(q, to - 1);
    expect(q != NULL && malloc_usable_size(q) == to - 1 && is_filled(q, to - 1), "and can be made smaller again");
    free(q);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        give(all[i]);
}

static void shrunk(void)
{
    limit_address_space(128 * MIB);
    shrinks(200000, 100);
    shrinks(3 * MIB, 100000);
    shrinks(20 * MIB, 100);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"swept", swept}, {"little", little}, {"grown", grown}, {"filtered", filtered}, {"shrunk", shrunk}};
    for (size_t i = 0; argc == 2 && i < sizeof all / sizeof all[0]; i++)
        if (strcmp(argv[1], all[i].name) == 0) {
            all[i].run();
            return 0;
        }
    expect(false, "which case?");
}
