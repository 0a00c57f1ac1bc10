/* SPDX-License-Identifier: MIT
 *
 * A large block lies where the running cid's last one lay, once a second cid gives blocks back; and by length while
 * there is only one.
 */
#include "heap/span_near.h"

#include <pthread.h>
#include <sched.h>

#include "heap/purge.h"
#include "heap/span.h"
#include "unit.h"

/* Half of it, too, is too long to be kept (span_cache.h). */
#define LONG  (70 * SLICE_BYTES)
#define SHORT (60 * SLICE_BYTES)

static void *free_elsewhere(void *p)
{
    unit_run_on(1);
    free(p);
    return NULL;
}

static void free_by_another(void *p)
{
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, free_elsewhere, p), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

struct blocks {
    char *ours, *others;
};

/* Of the two, the other's is as long as the next block.  What is between them stays, so nothing merges. */
static struct blocks take_two(void)
{
    span_purge(purge_force, 0, &(bool){false});
    struct blocks b;
    EXPECT(malloc(LONG * 2) != NULL);
    b.ours = malloc(LONG);
    EXPECT(malloc(LONG * 2) != NULL);
    b.others = malloc(SHORT);
    EXPECT(malloc(LONG * 2) != NULL);
    memset(b.ours, 1, LONG);
    memset(b.others, 1, SHORT);
    return b;
}

static void expect_next_at(const char *place)
{
    const char *next = malloc(SHORT);
    EXPECT_MSG(next == place, "%p in place of %p", (const void *)next, (const void *)place);
}

static void alone_it_goes_by_length(void)
{
    struct blocks b = take_two();
    free(b.others);
    free(b.ours);
    expect_next_at(b.others);
}

static void each_has_its_own(void)
{
    struct blocks b = take_two();
    free_by_another(b.others);
    free(b.ours);
    expect_next_at(b.ours);
}

/* Not where the free span begins that it has become a part of. */
static void it_lies_where_it_lay(void)
{
    struct blocks b = take_two();
    char *before = malloc(LONG / 2), *behind = malloc(LONG), *end = malloc(LONG * 2);
    EXPECT(before != NULL && behind == before + LONG / 2 && end == behind + LONG);
    memset(before, 1, LONG / 2);
    memset(behind, 1, LONG);
    free_by_another(b.others);
    free(before);
    free(behind);
    expect_next_at(behind);
}

static void the_best_fit_comes_first_if_it_is_half_as_long(void)
{
    struct blocks b = take_two();
    char *longer = malloc(LONG * 2);
    EXPECT(malloc(LONG * 2) != NULL);
    memset(longer, 1, LONG * 2);
    free_by_another(b.others);
    free(longer);
    expect_next_at(b.others);
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
    unit_run_on(0);
    alone_it_goes_by_length();
    each_has_its_own();
    else_it_lies_elsewhere();
    it_lies_where_it_lay();
    the_best_fit_comes_first_if_it_is_half_as_long();
    return 0;
}
