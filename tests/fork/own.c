/* SPDX-License-Identifier: MIT
 *
 * A forked child's mallocs do not copy the pages of its parent one by one: where free blocks lie apart it takes memory
 * of its own.  But not for ever: a child that frees what it inherited uses that, and so does one many forks down the
 * line.
 */
#include "fork/heap.h"
#include <sys/resource.h>

#define BLOCK_BYTES 1000
#define BLOCKS 20000
#define TAKEN 200
#define SHARE 3 /* every third block of the parent is free */

static char *parents[BLOCKS];

static void inherit(struct rng *rng)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK((parents[i] = malloc(BLOCK_BYTES)) != NULL);
        memset(parents[i], 1, BLOCK_BYTES);
    }
    for (size_t i = BLOCKS; i > 1; i--) {
        size_t other = rng_below(rng, i);
        char *block = parents[i - 1];
        parents[i - 1] = parents[other];
        parents[other] = block;
    }
    for (size_t i = 0; i < BLOCKS / SHARE; i++)
        free(parents[i]);
}

static long faults(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

static bool shares_a_page(const char *block)
{
    const uintptr_t page = 4096, mine = (uintptr_t)block / page;
    for (size_t i = BLOCKS / SHARE; i < BLOCKS; i++)
        if (parents[i] != NULL && mine == (uintptr_t)parents[i] / page)
            return true;
    return false;
}

/* How many of TAKEN blocks lie on a page with one of the parent's. */
static size_t take(void)
{
    static char *blocks[TAKEN];
    size_t between = 0;
    for (size_t i = 0; i < TAKEN; i++) {
        CHECK((blocks[i] = malloc(BLOCK_BYTES)) != NULL);
        memset(blocks[i], 2, BLOCK_BYTES);
    }
    for (size_t i = 0; i < TAKEN; i++)
        between += shares_a_page(blocks[i]);
    return between;
}

static size_t take_often(void)
{
    size_t between = 0;
    for (int i = 0; i < 10; i++)
        between += take();
    return between;
}

static void in_child(void (*what)(size_t), size_t argument)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        child_begin();
        what(argument);
        _exit(0);
    }
    child_reap(child);
}

static void takes_its_own(size_t unused)
{
    (void)unused;
    const long before = faults();
    size_t between = take();
    CHECK_MSG(between == 0, "%zu of %d blocks share pages with the parent's", between, TAKEN);
    CHECK_MSG(faults() - before < TAKEN / 2, "%ld page faults for %d blocks", faults() - before, TAKEN);
}

static void takes_what_it_freed(size_t unused)
{
    (void)unused;
    for (size_t i = BLOCKS / SHARE; i < BLOCKS / 2; i++) {
        free(parents[i]);
        parents[i] = NULL;
    }
    CHECK_MSG(take_often() > TAKEN, "what the child freed is not used again");
}

/* Each child takes a little and goes on in a child of its own. */
static void goes_on(size_t generations)
{
    if (generations > 0) {
        take();
        in_child(goes_on, generations - 1);
        return;
    }
    CHECK_MSG(take_often() > TAKEN, "a child of children takes fresh memory for ever");
}

int main(void)
{
    test_begin(120);
    if (!test_is_sutler())
        SKIP("it says where blocks lie, of Sutler's");
    struct rng rng = {test_seed_from(NULL)};
    inherit(&rng);
    in_child(takes_its_own, 0);
    in_child(takes_what_it_freed, 0);
    in_child(goes_on, 12);
    return 0;
}
