/* SPDX-License-Identifier: MIT
 *
 * The sections one by one.  rcs_compare_and_store, which all slow paths are built from: what it answers, that it stores
 * if and only if it says so, and that two threads of one cid can count with it without losing a step although nothing
 * in it is atomic.  hot_push and hot_pop: every answer they have.
 */
#include <pthread.h>
#include <sched.h>

#include "inspect.h"
#include "os/os.h"
#include "unit.h"

/* Interrupted sections are tried again: here that is chance, never every time. */
static enum rcs_result attempt(struct heap *h, const uint64_t *probe, uint64_t expected, uint64_t *target,
                               uint64_t value)
{
    enum rcs_result result;
    int tries = 0;
    do
        result = rcs_compare_and_store(h, probe, expected, target, value);
    while (result == rcs_aborted && ++tries < 1000);
    return result;
}

static void answers(void)
{
    struct heap *mine = test_heap_new(false), *other = test_heap_new(false);
    uint64_t probe = 11, target = 0;
    test_heap_bind(mine);
    EXPECT_EQ(attempt(mine, &probe, 11, &target, 1), rcs_done);
    EXPECT(probe == 11 && target == 1);
    EXPECT_EQ(attempt(mine, &probe, 12, &target, 2), rcs_changed);
    EXPECT(probe == 11 && target == 1);
    EXPECT_EQ(attempt(other, &probe, 11, &target, 3), rcs_moved);
    EXPECT_EQ(attempt(other, &probe, 12, &target, 3), rcs_moved); /* before it looks at the probe */
    EXPECT(probe == 11 && target == 1);
    EXPECT_EQ(attempt(mine, &probe, 11, &probe, 13), rcs_done); /* probe and target may be one */
    EXPECT_EQ(probe, 13);
    EXPECT_EQ(attempt(mine, &probe, 11, &probe, 14), rcs_changed);
    EXPECT_EQ(probe, 13);
    /* All 64 bits are compared, all are stored. */
    for (unsigned bit = 0; bit < 64; bit++) {
        probe = 1ull << bit;
        EXPECT_EQ(attempt(mine, &probe, 0, &target, 5), rcs_changed);
        EXPECT_EQ(attempt(mine, &probe, 1ull << bit, &target, ~probe), rcs_done);
        EXPECT_EQ(target, ~(1ull << bit));
    }
    test_heap_bind(other);
    target = 0;
    EXPECT_EQ(attempt(mine, &probe, probe, &target, 6), rcs_moved);
    EXPECT_EQ(attempt(other, &probe, probe, &target, 6), rcs_done);
    EXPECT_EQ(target, 6);
    test_heap_bind(NULL);
    EXPECT_EQ(attempt(other, &probe, probe, &target, 7), rcs_moved);
    EXPECT_EQ(target, 6);
}

static enum rcs_result commit(struct heap *h, const struct superblock *s, const uint64_t *probe, uint64_t *target,
                              uint64_t value)
{
    lock_take(&h->lock);
    enum rcs_result result = heap_commit(h, s, probe, 1, target, value);
    lock_release(&h->lock);
    return result;
}

/* The same question where no section is needed: the superblock is detached, or the heap is the global one. */
static void heap_commit_chooses(void)
{
    struct heap *mine = test_heap_new(false), *other = test_heap_new(false);
    struct superblock s = {.owner = 0};
    uint64_t probe = 1, target = 0;
    test_heap_bind(mine);
    EXPECT_EQ(heap_commit(other, &s, &probe, 1, &target, 2), rcs_done); /* detached: whoever asks */
    EXPECT_EQ(heap_commit(other, &s, &probe, 2, &target, 3), rcs_changed);
    superblock_set_owner(&s, other);
    EXPECT_EQ(commit(global_heap_of(0), &s, &probe, &target, 4), rcs_done);
    EXPECT_EQ(target, 4);
    if (sync_mode == sync_rcs) {
        EXPECT_EQ(commit(other, &s, &probe, &target, 5), rcs_moved);
        EXPECT_EQ(target, 4);
    } else {
        EXPECT_EQ(commit(other, &s, &probe, &target, 5), rcs_done);
    }
    superblock_set_owner(&s, mine);
    EXPECT_EQ(commit(mine, &s, &probe, &target, 6), rcs_done);
    EXPECT_EQ(target, 6);
    test_heap_bind(NULL);
}

/* ---- push and pop ---- */

static enum hot_pushed push(void *block, struct superblock *s)
{
    enum hot_pushed result;
    int tries = 0;
    do
        result = hot_push(block, s);
    while (result == hot_aborted && ++tries < 1000);
    return result;
}

/* NULL is also the answer to an interrupted section: asked often enough, it is not. */
static void *pop(unsigned c)
{
    void *block = NULL;
    for (int tries = 0; block == NULL && tries < 50; tries++)
        block = hot_pop(c);
    return block;
}

static void pushes_and_pops(void)
{
    struct heap *mine = test_heap_new(false), *other = test_heap_new(false);
    unsigned c = size_class_of(272);
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    void *a = test_take(s), *b = test_take(s);
    unsigned left = freelist_count(s->freelist);
    superblock_set_owner(s, mine);
    test_heap_bind(mine);
    EXPECT(pop(c) == NULL); /* nothing is active */
    mine->active[c] = s;
    EXPECT_EQ(push(a, s), hot_pushed);
    EXPECT(s->freelist == freelist_pack(a, left + 1) && freelist_top(next_get(a)) != NULL);
    EXPECT_EQ(freelist_count(next_get(a)), left);
    EXPECT_EQ(push(a, s), hot_double);
    EXPECT_EQ(s->freelist, freelist_pack(a, left + 1));
    s->threshold = (uint16_t)(left + 2);
    EXPECT_EQ(push(b, s), hot_pushed_notify);
    EXPECT_EQ(freelist_count(s->freelist), left + 2); /* the free has happened all the same */
    EXPECT(pop(c) == b && pop(c) == a);
    s->threshold = (uint16_t)(left + 2);
    EXPECT_EQ(push(a, s), hot_pushed); /* one before and one after the step do not notify */
    s->threshold = (uint16_t)(left + 1);
    EXPECT_EQ(push(b, s), hot_pushed);
    EXPECT(pop(c) == b);

    uint64_t list = s->freelist;
    superblock_set_owner(s, other);
    EXPECT_EQ(push(b, s), hot_foreign);
    superblock_clear_owner(s);
    EXPECT_EQ(push(b, s), hot_foreign);
    EXPECT_EQ(s->freelist, list);
    superblock_set_owner(s, mine);
    test_heap_bind(other);
    EXPECT_EQ(push(b, s), hot_foreign);
    EXPECT(pop(c) == NULL);
    EXPECT_EQ(s->freelist, list);

    /* A free block that was written to: its next does not continue the count, and it is not handed out. */
    test_heap_bind(mine);
    uint64_t next = next_get(a);
    next_set(a, next + 1);
    EXPECT(pop(c) == NULL);
    next_set(a, 0x4141414141414141);
    EXPECT(pop(c) == NULL);
    next_set(a, 0);
    EXPECT(pop(c) == NULL);
    EXPECT_EQ(s->freelist, list);
    next_set(a, next);
    EXPECT(pop(c) == a);
    test_give(s, a);
    test_give(s, b);
    /* To the last one, and not beyond. */
    for (unsigned n = 0; n < s->blocks; n++)
        EXPECT(pop(c) != NULL);
    EXPECT_EQ(s->freelist, 0);
    EXPECT(pop(c) == NULL);
    mine->active[c] = &empty_superblock;
    superblock_clear_owner(s);
    test_heap_bind(NULL);
    test_superblock_drop(s);
}

/* ---- counting ---- */

#define THREADS_MIN 6
#define THREADS_MAX 64
#define HEAPS_SEEN  64

static struct {
    uint64_t value;
    char pad[56];
} counter[HEAPS_SEEN];
static _Atomic uint64_t total, changed, moved, aborted;
static _Atomic bool stop;

static void *count(void *seed)
{
    struct rng rng = {(uintptr_t)seed};
    uint64_t done = 0, lost[4] = {0};
    unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    while (!stop) {
        struct heap *h = heap_here();
        EXPECT(h->number < HEAPS_SEEN);
        uint64_t *value = &counter[h->number].value;
        for (int i = 0; i < 100; i++) {
            uint64_t old = __atomic_load_n(value, __ATOMIC_RELAXED);
            if (i % 16 == 3)
                sched_yield(); /* between the look and the section: `changed` is the rule */
            enum rcs_result result = rcs_compare_and_store(h, value, old, value, old + 1);
            lost[result]++;
            done += result == rcs_done;
        }
        if (rng_below(&rng, 8) == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(rng_below(&rng, cpus), &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }
    total += done;
    changed += lost[rcs_changed];
    moved += lost[rcs_moved];
    aborted += lost[rcs_aborted];
    return NULL;
}

static void nobody_loses_a_step(uint64_t duration_ms, struct rng *rng)
{
    /* More than cpus: else each has a cid of its own, from Linux 6.19 on, and nobody could disturb anybody. */
    static pthread_t thread[THREADS_MAX];
    int threads = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN);
    threads = threads < THREADS_MIN ? THREADS_MIN : threads > THREADS_MAX ? THREADS_MAX : threads;
    for (int i = 0; i < threads; i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, count, (void *)(uintptr_t)rng_next(rng)), 0);
    usleep((useconds_t)duration_ms * 1000);
    stop = true;
    for (int i = 0; i < threads; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    uint64_t sum = 0;
    for (int i = 0; i < HEAPS_SEEN; i++)
        sum += counter[i].value;
    EXPECT_EQ(sum, total);
    unit_say("%llu steps; %llu changed, %llu moved, %llu aborted\n", (unsigned long long)total,
             (unsigned long long)changed, (unsigned long long)moved, (unsigned long long)aborted);
    EXPECT(total > 100 && changed > 0);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(120);
    heap_commit_chooses();
    unit_needs_rcs();
    struct rng rng = unit_rng();
    answers();
    pushes_and_pops();
    nobody_loses_a_step(unit_option(argc, argv, "--ms", 2000), &rng);
    return 0;
}
