/* SPDX-License-Identifier: MIT
 *
 * What an option of an engine changes, seen from the program; each case fails without its option.
 */
#include "engine_counts.h"
#include "support/proc.h"

#include <malloc.h>
#include <pthread.h>

#define BLOCKS 1000

static void *blocks[BLOCKS];

static void allocate_all(size_t size)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size);
        CHECK(blocks[i] != NULL);
    }
}

/* In an order of the generator's. */
static void free_all(struct rng *rng)
{
    for (size_t i = BLOCKS; i > 0; i--) {
        size_t at = rng_below(rng, i);
        free(blocks[at]);
        blocks[at] = blocks[i - 1];
    }
}

static void warm(size_t size)
{
    struct rng rng = {7};
    for (int round = 0; round < 20; round++) {
        allocate_all(size);
        free_all(&rng);
    }
}

/* The block freed last does not come next. */
static void fifo(void)
{
    warm(100);
    size_t same = 0;
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(100);
        free(block);
        void *next = malloc(100);
        same += next == block;
        free(next);
    }
    CHECK_MSG(same < 500, "the block freed last came next %zu of 1000 times", same);
}

static size_t count_ascending(void)
{
    size_t ascending = 0;
    warm(100);
    allocate_all(100);
    for (size_t i = 1; i < BLOCKS; i++)
        ascending += (uintptr_t)blocks[i] > (uintptr_t)blocks[i - 1];
    return ascending;
}

/* With blocks that come back through the manager (`fifo`): a refill is in order of address, however the blocks were
 * freed.  A manager that waits for a processor refills with fewer at a time: the best of some. */
static void ordered(void)
{
    size_t ascending = count_ascending();
    for (int i = 0; i < 9 && ascending <= BLOCKS * 3 / 4; i++) {
        struct rng rng = {11};
        free_all(&rng);
        ascending = count_ascending();
    }
    CHECK_MSG(ascending > BLOCKS * 3 / 4, "%zu of %d blocks lie above the one before", ascending, BLOCKS - 1);
}

/* A block is at most as large as its bin and what the library rounds up to. */
static void small(void)
{
    warm(150);
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(150);
        CHECK_MSG(malloc_usable_size(block) < 200, "%zu bytes for 150", malloc_usable_size(block));
        free(block);
    }
}

/* MMT, buckets of 100: the next one is ordered at half of one, not at its first block. */
static void conservative(void)
{
    void *first = malloc(100); /* a request, which starts the first bucket */
    sleep_us(100000);
    uint64_t before = counted("buckets");
    for (int i = 0; i < 40; i++)
        blocks[i] = malloc(100);
    CHECK(counted("buckets") == before);
    for (int i = 40; i < 90; i++)
        blocks[i] = malloc(100);
    CHECK(counted("buckets") == before + 1);
    free(first);
}

/* MMT, buckets of 2: the block freed last can come back at once, without the server. */
static void shortcut(void)
{
    size_t same = 0;
    for (int i = 0; i < 20000; i++) {
        void *block = malloc(100);
        free(block);
        void *next = malloc(100);
        same += next == block;
        free(next);
    }
    CHECK_MSG(same > 0, "a block just freed never came back");
}

/* MMT, queues of 10. */
static void queue(void)
{
    uint64_t before = counted("handed");
    allocate_all(100);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    CHECK_MSG(counted("handed") - before == BLOCKS / 10, "%lu queues", (unsigned long)(counted("handed") - before));
}

/* MMT, buckets of 25; some requests find none and get a single block. */
static void bucket(void)
{
    uint64_t before = counted("buckets"), messages = counted("messages");
    allocate_all(100);
    uint64_t taken = counted("buckets") - before, requests = counted("messages") - messages;
    CHECK_MSG(taken * 25 + requests >= BLOCKS - 25 && taken <= BLOCKS / 25, "%lu buckets, %lu requests",
              (unsigned long)taken, (unsigned long)requests);
}

/* ------------------------------------------------------------------------------------------------------ several
 * managers */

#define MANAGERS 3

static int managers[MANAGERS];

/* The threads of that name, in the order they were started. */
static int look_for_managers(void)
{
    int found = 0;
    for (int id = getpid() + 1; id < getpid() + 1000 && found < MANAGERS; id++) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", id);
        proc_read(path, name, sizeof name);
        if (strcmp(name, "sutler-engine\n") == 0)
            managers[found++] = id;
    }
    return found;
}

/* They name themselves, which on a loaded machine takes a while. */
static void find_managers(void)
{
    int found = 0;
    for (int i = 0; i < 2000 && (found = look_for_managers()) < MANAGERS; i++)
        sleep_us(5000);
    CHECK_MSG(found == MANAGERS, "%d managers", found);
}

/* For how long a manager has run so far. */
static uint64_t busy_ns(int manager)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", manager);
    proc_read(path, text, sizeof text);
    return strtoull(text, NULL, 10);
}

static bool is_asleep(int manager)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", manager);
    proc_read(path, text, sizeof text);
    const char *state = strrchr(text, ')');
    return state != NULL && state[2] == 'S';
}

/* A manager sleeps only when nothing is left for it to do; on a loaded machine it may be late. */
static void let_managers_finish(void)
{
    for (int i = 0; i < MANAGERS; i++) {
        while (!is_asleep(managers[i]))
            sleep_us(1000);
    }
}

static int served_by[MANAGERS];

/* Each thread starts the next one and works alone: the manager that was busiest because of it is its. */
static void *served(void *argument)
{
    uintptr_t turn = (uintptr_t)argument;
    uint64_t before[MANAGERS];
    pthread_t next;
    warm(100);
    let_managers_finish();
    for (int i = 0; i < MANAGERS; i++)
        before[i] = busy_ns(managers[i]);
    warm(100);
    warm(300);
    let_managers_finish();
    for (int i = 1; i < MANAGERS; i++) {
        int best = served_by[turn];
        if (busy_ns(managers[i]) - before[i] > busy_ns(managers[best]) - before[best])
            served_by[turn] = i;
    }
    if (turn + 1 < MANAGERS) {
        CHECK(pthread_create(&next, NULL, served, (void *)(turn + 1)) == 0);
        CHECK(pthread_join(next, NULL) == 0);
    }
    return NULL;
}

/* Threads are divided among the managers. */
static void divided(void)
{
    warm(100);
    find_managers();
    served((void *)0);
    for (int i = 0; i < MANAGERS; i++) {
        for (int j = 0; j < i; j++)
            CHECK_MSG(served_by[i] != served_by[j], "threads %d and %d have the same manager", j, i);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"fifo", fifo},         {"ordered", ordered}, {"small", small},   {"conservative", conservative},
                 {"shortcut", shortcut}, {"queue", queue},     {"bucket", bucket}, {"managers", divided}};
    engine_begin(100);
    CHECK(argc == 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(argv[1], cases[i].name) != 0)
            continue;
        cases[i].run();
        return 0;
    }
    FAIL("no case %s", argv[1]);
}
