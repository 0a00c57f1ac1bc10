/* SPDX-License-Identifier: MIT
 *
 * A large block lies where the running cid's last one lay, once a second cid gives blocks back; and by length while there is
 * only one.
 */
#include "heap/span_near.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "heap/purge.h"
#include "heap/span.h"
#include "unit.h"

/* Too long for the cache of spans, and one shorter than the other. */
#define LONG  (60 * SLICE_BYTES)
#define SHORT (50 * SLICE_BYTES)

static _Atomic bool is_done;

static void run_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)cpu, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static void *free_elsewhere(void *p)
{
    run_on(1);
    free(p);
    atomic_store(&is_done, true);
    return NULL;
}

/* Both run at once, or they might have one cid. */
static void free_by_another(void *p)
{
    pthread_t thread;
    atomic_store(&is_done, false);
    EXPECT_EQ(pthread_create(&thread, NULL, free_elsewhere, p), 0);
    while (!atomic_load(&is_done))
        ;
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

struct blocks {
    char *ours, *others;
    void *between[3];
};

/* Of the two, the other's is as long as the next block. */
static struct blocks take_two(void)
{
    span_purge(purge_force, 0, &(bool){false});
    struct blocks b = {.between[0] = malloc(LONG * 2)};
    b.ours = malloc(LONG);
    b.between[1] = malloc(LONG * 2);
    b.others = malloc(SHORT);
    b.between[2] = malloc(LONG * 2);
    memset(b.ours, 1, LONG);
    memset(b.others, 1, SHORT);
    return b;
}

static void drop(struct blocks b, char *taken)
{
    free(taken);
    for (size_t i = 0; i < ARRAY_LEN(b.between); i++)
        free(b.between[i]);
}

static void alone_it_goes_by_length(void)
{
    struct blocks b = take_two();
    free(b.others);
    free(b.ours);
    char *next = malloc(SHORT);
    EXPECT_MSG(next == b.others, "%p in place of %p", (void *)next, (void *)b.others);
    drop(b, next);
}

static void each_has_its_own(void)
{
    struct blocks b = take_two();
    free_by_another(b.others);
    free(b.ours);
    char *next = malloc(SHORT);
    EXPECT_MSG(next == b.ours, "%p in place of %p", (void *)next, (void *)b.ours);
    drop(b, next);
}

/* Not where the free span begins that it has become a part of. */
static void it_lies_where_it_lay(void)
{
    struct blocks b = take_two();
    char *both = malloc(LONG * 4);
    EXPECT(both != NULL && realloc(both, LONG) == both);
    char *behind = malloc(LONG * 3);
    EXPECT(behind == both + LONG);
    memset(both, 1, LONG);
    memset(behind, 1, LONG * 3);
    free_by_another(b.others);
    free(both);
    free(behind);
    char *next = malloc(SHORT);
    EXPECT_MSG(next == behind, "%p in place of %p", (void *)next, (void *)behind);
    drop(b, next);
    free(b.ours);
}

/* What lay there is another's by now, or too short. */
static void else_it_lies_elsewhere(void)
{
    struct blocks b = take_two();
    free_by_another(b.others);
    free(b.ours);
    char *first = malloc(SHORT), *second = malloc(SHORT);
    EXPECT(first == b.ours && second == b.others);
    free(first);
    char *third = malloc(LONG * 3);
    EXPECT(third != b.ours);
    free(third);
    drop(b, second);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    cpu_set_t cpus;
    EXPECT_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    if (!CPU_ISSET(0, &cpus) || !CPU_ISSET(1, &cpus)) {
        puts("SKIPPED: needs the first two processors");
        return 77;
    }
    run_on(0);
    alone_it_goes_by_length();
    each_has_its_own();
    else_it_lies_elsewhere();
    it_lies_where_it_lay();
    return 0;
}
