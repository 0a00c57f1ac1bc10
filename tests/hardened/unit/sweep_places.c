/* SPDX-License-Identifier: MIT
 *
 * A pointer to the freed block in one place of the program's memory after another.  And what comes of a block that is
 * kept for such a pointer: in a child, and when somebody writes to it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sweep.h"

/* ---- places ---- */

void *volatile zeroed_global;
static void *volatile set_global = &size;
static __thread void *volatile thread_local;

void nowhere(void)
{
    take_block();
    free_block();
    expect_free();
}

void global(void)
{
    keep_in(&zeroed_global, 0);
    keep_in(&set_global, 0);
}

void interior(void)
{
    keep_in(&zeroed_global, 1);
    keep_in(&zeroed_global, size - 1);
    keep_in(&zeroed_global, size); /* one past the end */
}

void stack(void)
{
    void *volatile here = NULL;
    keep_in(&here, 0);
}

void heap(void)
{
    void *volatile *node = calloc(1, 64);
    keep_in(&node[3], 0);
    node = realloc((void *)node, MIB);
    node[20000] = NULL;
    keep_in(&node[20000], 0);
    free((void *)node);
}

void own_thread_local(void)
{
    keep_in(&thread_local, 0);
}

void mapping(void)
{
    void *volatile *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    keep_in(&page[100], 0);
    take_block();
    put(&page[0], 0);
    mprotect((void *)page, 4096, PROT_READ);
    free_block();
    expect_kept();
    munmap((void *)page, 4096);
    expect_free();
}

/* Tells how many huge pages the machine has set aside, and has it set aside `count`; -1: that may not be done. */
static long set_aside(long count)
{
    long before = -1;
    FILE *file = fopen("/proc/sys/vm/nr_hugepages", "r+");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%ld", &before) == 1) {
        rewind(file);
        fprintf(file, "%ld\n", count);
    }
    fclose(file);
    return before;
}

/* The system may refuse to look into pages of this kind as it does into others. */
void hugetlb(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
    long before = -1;
    void *place = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (place == MAP_FAILED) {
        before = set_aside(4);
        place = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
    }
    if (place != MAP_FAILED) {
        void *volatile *page = place;
        keep_in(&page[100], 0);
        keep_in(&page[200000], 0);
        munmap(place, 2 * MIB);
    }
    if (before >= 0)
        set_aside(before);
    if (place == MAP_FAILED) {
        puts("SKIPPED: no page of hugetlbfs is to be had");
        exit(77);
    }
}

/* Memory that the thread that sweeps must not read, by its protection keys. */
void protected_mapping(void)
{
    const int key = pkey_alloc(0, 0);
    void *volatile *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (key < 0) {
        puts("SKIPPED: no protection keys");
        exit(77);
    }
    pkey_mprotect((void *)page, 4096, PROT_READ | PROT_WRITE, key);
    take_block();
    put(page, 0);
    free_block();
    pkey_set(key, PKEY_DISABLE_ACCESS);
    expect_kept();
    expect(pkey_get(key) == PKEY_DISABLE_ACCESS, "and may not afterwards");
    pkey_set(key, 0);
    *page = NULL;
    expect_free();
}

/* The program's own copy of a page of a file is looked at while it can be written to. */
void file_mapping(void)
{
    FILE *file = tmpfile();
    expect(file != NULL && ftruncate(fileno(file), 4096) == 0, "a file");
    void *volatile *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    keep_in(&page[100], 0);
    take_block();
    put(&page[0], 0);
    free_block();
    expect_kept();
    mprotect((void *)page, 4096, PROT_READ);
    expect_free();
    munmap((void *)page, 4096);
    fclose(file);
}

void shared_mapping(void)
{
    void *volatile *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    take_block();
    put(page, 0);
    free_block();
    expect_free(); /* it is not looked at */
}

static __attribute__((noinline)) void free_cycle(void)
{
    void **a = malloc(size), **b = malloc(size);
    *a = b;
    *b = a;
    hidden = ~(uintptr_t)a;
    free(b);
    free(a);
}

void cycle(void)
{
    free_cycle();
    expect_free();
}

void large(void)
{
    static const size_t sizes[] = {5000, 100000, 200000, 1048576, 32 * 1048576};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size = sizes[i];
        nowhere();
        keep_in(&zeroed_global, 0);
        keep_in(&zeroed_global, size / 2);
        keep_in(&zeroed_global, size);
    }
}

/* ---- what is kept ---- */

int end_of(void (*deed)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        deed();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void clear_and_expect_free(void)
{
    expect_kept();
    zeroed_global = NULL;
    expect_free();
    global();
}

void in_child(void)
{
    take_block();
    put(&zeroed_global, 0);
    free_block();
    expect_kept();
    expect(end_of(clear_and_expect_free) == 0, "in a child: what its parent kept is kept, until the pointer is gone");
    expect_kept();
}

static void write_when_kept(void)
{
    take_block();
    put(&zeroed_global, 0);
    free_block();
    expect_kept();
    ((volatile char *)zeroed_global)[50] = 1;
    zeroed_global = NULL;
    is_handed_out();
}

void written(void)
{
    int status = end_of(write_when_kept);
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
           "a write to a kept block is found when it is given back");
}
