/* SPDX-License-Identifier: MIT
 *
 * Sweeps and memory: that two may read it, how much of it asks for a sweep, and how much kept blocks take.
 */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "support/proc.h"
#include "sweep.h"

static uintptr_t *map_outside(size_t bytes)
{
    uintptr_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(memory != MAP_FAILED, "mmap");
    for (size_t i = 0; i < bytes / sizeof *memory; i++)
        memory[i] = i;
    return memory;
}

enum { POINTERS = 500, OUTSIDE_MIB = 48, ROUNDS = 20, SPREAD_SIZE = 112 };
static uintptr_t spread_taken[POINTERS];

static size_t place_of(size_t i, size_t round)
{
    return (i * 2654435761u + round * 40503u) % (OUTSIDE_MIB * MIB / sizeof(uintptr_t) - POINTERS) + i;
}

static __attribute__((noinline)) void take_and_free(uintptr_t *memory, size_t round)
{
    for (size_t i = 0; i < POINTERS; i++) {
        char *p = malloc(SPREAD_SIZE);
        spread_taken[i] = ~(uintptr_t)p;
        memory[place_of(i, round)] = (uintptr_t)p;
    }
    for (size_t i = 0; i < POINTERS; i++)
        free((void *)~spread_taken[i]);
}

static __attribute__((noinline)) size_t count_handed_out(void)
{
    static uintptr_t again[4 * POINTERS];
    size_t found = 0;
    for (size_t k = 0; k < 4 * POINTERS; k++) {
        again[k] = ~(uintptr_t)malloc(SPREAD_SIZE);
        for (size_t i = 0; i < POINTERS; i++)
            found += again[k] == spread_taken[i];
    }
    for (size_t k = 0; k < 4 * POINTERS; k++)
        free((void *)~again[k]);
    return found;
}

/* The manager as well. */
static void let_all_run_anywhere(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    DIR *threads = opendir("/proc/self/task");
    expect(threads != NULL, "/proc/self/task");
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;)
        if (entry->d_name[0] != '.')
            sched_setaffinity(atoi(entry->d_name), sizeof all, &all);
    closedir(threads);
}

/* So much memory that the manager reads a part of it, while threads are stopped. */
void spread(void)
{
    uintptr_t *memory = map_outside(OUTSIDE_MIB * MIB);
    for (size_t n = 16 * MIB / SPREAD_SIZE; n > 0; n--) /* there is no manager in a small program */
        expect(malloc(SPREAD_SIZE) != NULL, "malloc");
    let_all_run_anywhere();
    for (size_t round = 0; round < ROUNDS; round++) {
        take_and_free(memory, round);
        wash_stack();
        purge();
        expect(stats().kept_blocks >= POINTERS, "all are kept");
        expect(count_handed_out() == 0, "a block was handed out to which there is a pointer somewhere in much memory");
        for (size_t i = 0; i < POINTERS; i++)
            memory[place_of(i, round)] = 0;
    }
    wash_stack();
    purge();
    expect(stats().kept_blocks < POINTERS / 10, "and they are given back when the pointers are gone");
}

static void free_much(size_t mib)
{
    for (size_t n = mib << 10; n > 0; n--)
        free(malloc(1024));
}

/* What has to be read as well counts for how much may be kept: so sweeps are as rare as they are dear. */
void outside(void)
{
    map_outside(200 * MIB);
    free_much(10);
    const uint64_t before = stats().sweeps;
    free_much(400);
    const uint64_t sweeps = stats().sweeps - before;
    expect(before > 0 && sweeps > 1 && sweeps < 20, "a sweep for each 54 MiB");
}

enum { SURVIVORS = 256, SURVIVOR_SIZE = 64000 };
static char *volatile dangling[SURVIVORS];

static void sweep_again(void)
{
    purge();
    expect(dangling[1][SURVIVOR_SIZE / 2] == 0, "zeros");
}

static void write_into_survivor(void)
{
    dangling[SURVIVORS / 2][SURVIVOR_SIZE / 2] = 1;
    purge();
}

/* A block may be pointed to for ever. */
void survivors(void)
{
    const size_t bytes = SURVIVORS * SURVIVOR_SIZE;
    for (size_t i = 0; i < SURVIVORS; i++)
        memset(dangling[i] = malloc(SURVIVOR_SIZE), 1, SURVIVOR_SIZE);
    const size_t before = proc_resident_bytes();
    for (size_t i = 0; i < SURVIVORS; i++)
        free(dangling[i]);
    purge();
    const size_t after = proc_resident_bytes();
    expect(stats().kept_bytes >= bytes / 10 * 9, "they are kept");
    expect(before > after && before - after >= bytes / 4 * 3, "without most of their pages");
    expect(end_of(sweep_again) == 0, "that they hold zeros is seen all the same");
    const int status = end_of(write_into_survivor);
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "a write to one is found by the next sweep");
}
