/* SPDX-License-Identifier: MIT
 *
 * Why: an allocator that has pages cleared on another cpu saves its program the page faults and hands it memory that
 * lies in another cpu's cache.  What is left of the gain is the machine's affair, so here it is without any allocator:
 * a mapping of huge pages is filled with lists of 32-byte nodes, as a heap is (16 KiB are linked, then each node is
 * read and written), once by a thread that takes its own page faults, and once behind a second thread on another cpu
 * that touches each huge page `ahead` pages before.  `rounds` times each in turn.
 *
 * `wall_ratio` and `cpu_ratio` are the second over the first, the processor time of both threads together (that of a
 * thread which waits for the other not counted).  An allocator's own ratios are to be read beside them.  `over_50us`
 * and `longest_us` are the first touches of as many single pages with no huge page and no second thread: the stalls the
 * machine has by itself.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "cpus.h"
#include "histogram.h"
#include "memory.h"
#include "result.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE = 2 << 20, PAGE = 4096, CARVED = 16384, NODE = 32 };

struct cost {
    uint64_t wall_ns, cpu_ns;
};

static uint64_t count, ahead;
static char *pages;
static uint32_t x_touched, x_filled;
static uint64_t touching_ns;

static uint64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fill(char *huge)
{
    for (char *part = huge; part < huge + HUGE; part += CARVED) {
        for (char *node = part; node < part + CARVED; node += NODE)
            *(char **)node = node + NODE;
        for (char *node = part, *next; node < part + CARVED; node = next) {
            next = *(char *volatile *)node;
            for (int word = 0; word < NODE / 8; word++)
                ((volatile uint64_t *)node)[word] = (uint64_t)next + (uint64_t)word;
        }
    }
}

static void *touch_ahead(void *cpu)
{
    cpu_of_thread_set(0, *(int *)cpu);
    for (uint32_t i = 0; i < count; i++) {
        while (__atomic_load_n(&x_filled, __ATOMIC_ACQUIRE) + ahead < i)
            cpu_relax();
        uint64_t begin_ns = thread_ns();
        pages_touch(pages + (uint64_t)i * HUGE, 1);
        touching_ns += thread_ns() - begin_ns;
        __atomic_store_n(&x_touched, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Fresh pages, of memory that was just in use on the cpu that will touch it: where a host gives memory out at its first
 * touch, it has; and each cpu keeps some of what was freed on it for itself. */
static char *fresh(int advice, int cpu)
{
    uint64_t bytes = count * HUGE;
    if (pages != NULL)
        pages_unmap(pages, bytes);
    cpu_of_thread_set(0, cpu);
    char *warm = pages_map_untouched(bytes, MADV_HUGEPAGE);
    pages_touch(warm, bytes);
    pages_unmap(warm, bytes);
    return pages_map_untouched(bytes, advice);
}

static struct cost filled(int own, int *helper)
{
    pthread_t thread;
    pages = fresh(MADV_HUGEPAGE, helper != NULL ? *helper : own);
    cpu_of_thread_set(0, own);
    x_touched = x_filled = 0;
    touching_ns = 0;
    if (helper != NULL && pthread_create(&thread, NULL, touch_ahead, helper) != 0) {
        fprintf(stderr, "handover: no thread\n");
        exit(3);
    }
    uint64_t begin_ns = clock_ns(), filling_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        while (helper != NULL && __atomic_load_n(&x_touched, __ATOMIC_ACQUIRE) <= i)
            cpu_relax();
        uint64_t from_ns = thread_ns();
        fill(pages + (uint64_t)i * HUGE);
        filling_ns += thread_ns() - from_ns;
        __atomic_store_n(&x_filled, i + 1, __ATOMIC_RELEASE);
    }
    uint64_t wall_ns = clock_ns() - begin_ns;
    if (helper != NULL)
        pthread_join(thread, NULL);
    return (struct cost){wall_ns, filling_ns + touching_ns};
}

/* The host of a virtual machine only ever adds to a time: the least of several rounds is the machine's own. */
static struct cost least(struct cost a, struct cost b)
{
    return (struct cost){a.wall_ns < b.wall_ns ? a.wall_ns : b.wall_ns, a.cpu_ns < b.cpu_ns ? a.cpu_ns : b.cpu_ns};
}

int main(int argc, char **argv)
{
    uint64_t mib = 512, rounds = 5;
    int cpu[2];
    ahead = 4;
    const struct arg args[] = {
        {"mib", ARG_COUNT, &mib, "MiB to fill"},
        {"ahead", ARG_COUNT, &ahead, "huge pages the second thread may be ahead"},
        {"rounds", ARG_COUNT, &rounds, "of each kind; the best counts"},
    };
    ARGS_READ("handover", argc, argv, args);
    count = mib / 2;
    if (count < 1 || rounds < 1)
        args_reject("mib, rounds", "at least 2 MiB, at least one round");
    if (!cpus_two(cpu)) {
        fprintf(stderr, "handover: skipped: needs two cpus\n");
        return 77;
    }
    struct cost alone = {UINT64_MAX, UINT64_MAX}, behind = alone;
    uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0; i < rounds; i++) {
        alone = least(alone, filled(cpu[0], NULL));
        behind = least(behind, filled(cpu[0], &cpu[1]));
    }
    uint64_t end_ns = clock_ns();
    static struct histogram first_touches;
    pages = fresh(MADV_NOHUGEPAGE, cpu[0]);
    for (uint64_t at = 0; at < count * HUGE; at += PAGE) {
        uint64_t from_ns = clock_ns();
        pages_touch(pages + at, 1);
        histogram_add(&first_touches, clock_ns() - from_ns);
    }
    result_begin("handover", 2, rounds * 2 * count, end_ns - begin_ns);
    result_count("mib", count * 2);
    result_real("wall_ratio", (double)behind.wall_ns / (double)alone.wall_ns);
    result_real("cpu_ratio", (double)behind.cpu_ns / (double)alone.cpu_ns);
    histogram_report(&first_touches, "");
    return result_end(0);
}
