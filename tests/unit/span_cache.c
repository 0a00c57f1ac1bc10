/* SPDX-License-Identifier: MIT
 *
 * Freed spans that are kept for the next large block: who may have them again, how much is kept, what the counts say,
 * and when they go back.
 */
#include "heap/span_cache.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "heap/demand.h"
#include "heap/large.h"
#include "heap/purge.h"
#include "heap/span.h"
#include "unit.h"

#define BYTES ((size_t)300000)
#define KEPT_MOST ((size_t)8 << 20) /* by one cid */

static void empty(void)
{
    span_cache_purge(true, &(bool){false});
    EXPECT_EQ(span_cache_bytes(), 0);
}

static void a_freed_one_is_had_again(void)
{
    empty();
    char *p = malloc(BYTES), *other = malloc(BYTES * 2);
    memset(p, 7, BYTES);
    free(p);
    free(other);
    EXPECT(span_cache_bytes() >= 3 * BYTES);
    char *q = malloc(BYTES);
    EXPECT(q == p && q[BYTES - 1] == 7);
    free(q);
    EXPECT((q = calloc(1, BYTES)) == p);
    for (size_t i = 0; i < BYTES; i++)
        EXPECT(q[i] == 0);
    free(q);
    q = malloc(BYTES - SLICE_BYTES);
    EXPECT_EQ(malloc_usable_size(q), align_up(BYTES - SLICE_BYTES, SLICE_BYTES)); /* of another length */
    for (size_t alignment = SLICE_BYTES; alignment <= SLICE_BYTES * 16; alignment *= 2)
        EXPECT((uintptr_t)aligned_alloc(alignment, BYTES) % alignment == 0);
}

/* What is kept goes back before a block of another length is taken, and is a part of it. */
static void other_lengths_lie_there_too(void)
{
    const unsigned lengths = 50;
    empty();
    span_purge(purge_force, 0, &(bool){false});
    struct rng rng = unit_rng();
    size_t longest = 0;
    for (unsigned round = 0; round < lengths; round++) {
        const size_t slices = 2 + rng_below(&rng, SPAN_CACHE_SLICES_MAX - 2);
        char *p = malloc(slices * SLICE_BYTES);
        memset(p, 1, slices * SLICE_BYTES);
        free(p);
        longest = max_size(longest, slices * SLICE_BYTES);
    }
    EXPECT_MSG(span_counts().dirty_bytes <= 2 * longest, "%zu bytes are free, of blocks of %zu one at a time",
               span_counts().dirty_bytes, longest);
}

static void what_is_kept_is_bounded(void)
{
    static void *block[200];
    empty();
    for (size_t slices = 3; slices <= SPAN_CACHE_SLICES_MAX; slices += 5) {
        for (size_t i = 0; i < ARRAY_LEN(block); i++)
            EXPECT((block[i] = malloc(slices * SLICE_BYTES)) != NULL);
        for (size_t i = 0; i < ARRAY_LEN(block); i++)
            free(block[i]);
        EXPECT(span_cache_bytes() >= slices * SLICE_BYTES && span_cache_bytes() <= KEPT_MOST);
    }
    empty();
    free(malloc((SPAN_CACHE_SLICES_MAX + 1) * SLICE_BYTES));
    EXPECT_EQ(span_cache_bytes(), 0);
    memory_is_short = true;
    free(malloc(BYTES));
    EXPECT_EQ(span_cache_bytes(), 0);
    memory_is_short = false;
}

/* A full cache keeps the last ones. */
static void the_last_ones_stay(void)
{
    static void *block[40];
    empty();
    for (size_t i = 0; i < ARRAY_LEN(block); i++)
        EXPECT((block[i] = malloc(BYTES * 5)) != NULL); /* one of them is kept */
    for (size_t i = 0; i < ARRAY_LEN(block); i++)
        free(block[i]);
    EXPECT(malloc(BYTES * 5) == block[ARRAY_LEN(block) - 1]);
}

static void they_count_as_free(void)
{
    empty();
    struct span_counts before = span_counts();
    struct large_counts large = large_counts();
    void *p = malloc(BYTES);
    size_t bytes = malloc_usable_size(p);
    EXPECT_EQ(span_counts().in_use_bytes, before.in_use_bytes + bytes);
    EXPECT(large_counts().blocks == large.blocks + 1 && large_counts().bytes == large.bytes + bytes);
    free(p);
    EXPECT_EQ(span_cache_bytes(), bytes);
    EXPECT_EQ(span_counts().in_use_bytes, before.in_use_bytes);
    EXPECT(span_counts().dirty_bytes >= bytes);
    EXPECT(large_counts().blocks == large.blocks && large_counts().bytes == large.bytes);
}

/* By two passes of the clock, with their pages; by any other purge, and before memory is refused, at once. */
static void they_go_back(void)
{
    bool changed = false;
    empty();
    span_purge(purge_force, 0, &changed);
    char *p = malloc(BYTES);
    memset(p, 1, BYTES);
    free(p);
    changed = false;
    span_purge(purge_decay, 0, &changed);
    EXPECT(changed && span_cache_bytes() > 0);
    free(malloc(BYTES)); /* young again */
    span_purge(purge_decay, 0, &changed);
    EXPECT(span_cache_bytes() > 0);
    EXPECT(span_purge(purge_decay, 0, &changed) >= BYTES);
    EXPECT_EQ(span_cache_bytes(), 0);

    free(malloc(BYTES));
    EXPECT(span_cache_bytes() > 0);
    EXPECT(span_purge(purge_force, 0, &changed) >= BYTES);
    EXPECT_EQ(span_cache_bytes(), 0);

    uint32_t first;
    free(malloc(BYTES));
    EXPECT(span_squeeze(1, 1, &first));
    EXPECT_EQ(span_cache_bytes(), 0);
    span_give(first, 1);
}

static void a_second_free_is_seen(void)
{
    empty();
    char *p = malloc(BYTES);
    free(p);
    EXPECT(span_cache_bytes() > 0);
    EXPECT_EQ(block_find(p).kind, block_free);
    EXPECT_EQ(block_find(p + 16).kind, block_invalid);
    EXPECT(!large_span_give(p) && !large_span_keep(p));
    EXPECT(malloc(BYTES) == p && malloc(BYTES) != p);
}

/* ---- a child ---- */

static uint32_t in_slot, in_hand;

extern pid_t _Fork(void) __attribute__((weak)); /* runs no handlers */

static void check_child(void)
{
    char *p = malloc(BYTES); /* of a length that is kept */
    EXPECT(p != NULL);
    EXPECT(slice_at(in_slot)->kind != slice_kept);
    EXPECT(slice_at(in_hand)->kind != slice_kept);
    EXPECT_EQ(span_cache_bytes(), 0);
    free(p);
    EXPECT(malloc(BYTES) == p && malloc(BYTES) != p);
}

/* What a vanished thread had between slot and block is free, and so is what was kept. */
static void a_child_has_them_free(pid_t (*make)(void))
{
    char *p = malloc(BYTES), *q = malloc(BYTES);
    empty();
    in_hand = slice_of(p);
    in_slot = slice_of(q);
    free(p);
    EXPECT_EQ(span_cache_take(slices_for(BYTES)), in_hand);
    free(q);
    unit_hold(&span_lock); /* something is half-done */
    pid_t child = make();
    EXPECT(child >= 0);
    if (child == 0) {
        check_child();
        _exit(0);
    }
    unit_let_go(&span_lock);
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT(span_cache_put(in_hand, slices_for(BYTES), false));
}

static _Atomic bool is_through;

static void *stand_by(void *unused)
{
    while (!is_through)
        sched_yield();
    return unused;
}

/* What a signal handler does that comes in the middle; NULL: none comes.  (The compiler knows malloc and free, and that
 * they change nothing of ours.) */
static pid_t (*volatile handler_makes)(void);
static volatile pid_t made = -1;

static void happen(void)
{
    pid_t (*const make)(void) = handler_makes;
    if (make == NULL)
        return;
    handler_makes = NULL;
    made = make();
    EXPECT(made >= 0);
    for (int i = 0; i < 100; i++) /* small and large ones, whose slow paths would recover the child */
        free(malloc((size_t)100 << i % 16));
}

bool __real_span_cache_put(uint32_t first, size_t slices, bool replaces);
bool __wrap_span_cache_put(uint32_t first, size_t slices, bool replaces);
bool __wrap_span_cache_put(uint32_t first, size_t slices, bool replaces)
{
    happen();
    return __real_span_cache_put(first, slices, replaces);
}

uint32_t __real_span_cache_take(size_t slices);
uint32_t __wrap_span_cache_take(size_t slices);
uint32_t __wrap_span_cache_take(size_t slices)
{
    const uint32_t first = __real_span_cache_take(slices);
    happen();
    return first;
}

/* What the thread itself has between slot and block is its own in the child, too: it comes into a slot, or is the block
 * that is handed out, and nobody else's. */
static void a_child_made_in_the_middle_has_nothing_twice(pid_t (*make)(void))
{
    char *mine[8] = {malloc(BYTES), malloc(BYTES)};
    empty();
    handler_makes = make;
    free(mine[1]);
    mine[1] = malloc(BYTES);
    if (made != 0) {
        free(mine[1]);
        handler_makes = make;
        mine[1] = malloc(BYTES);
    }
    EXPECT(handler_makes == NULL);
    for (size_t i = 0; i < ARRAY_LEN(mine); i++) {
        if (i > 1)
            EXPECT((mine[i] = malloc(BYTES)) != NULL);
        for (size_t k = 0; k < i; k++)
            EXPECT(mine[i] != mine[k]);
    }
    for (size_t i = 0; i < ARRAY_LEN(mine); i++)
        free(mine[i]);
    if (made == 0)
        _exit(0);
}

static void handlers_make_children(pid_t (*make)(void))
{
    pthread_t other; /* else the heap is known to be whole */
    EXPECT_EQ(pthread_create(&other, NULL, stand_by, NULL), 0);
    a_child_made_in_the_middle_has_nothing_twice(make);
    for (int status; waitpid(-1, &status, 0) > 0;)
        EXPECT_EQ(status, 0);
    is_through = true;
    EXPECT_EQ(pthread_join(other, NULL), 0);
    is_through = false;
    made = -1;
}

/* ---- threads that share slots ---- */

static uint64_t rounds;
static _Atomic bool purging;

static void *use(void *number)
{
    struct rng rng = {(uint64_t)(uintptr_t)number};
    uint64_t *mine[8] = {NULL};
    for (uint64_t i = 0; i < rounds; i++) {
        size_t k = rng_below(&rng, ARRAY_LEN(mine));
        if (mine[k] != NULL) {
            EXPECT_MSG(*mine[k] == ((uintptr_t)number << 32 | k), "a block is somebody else's, too");
            free(mine[k]);
        }
        EXPECT((mine[k] = malloc(BYTES + rng_below(&rng, 3) * SLICE_BYTES)) != NULL);
        *mine[k] = (uintptr_t)number << 32 | k;
        if (i % 16 == 0)
            sched_yield();
    }
    for (size_t k = 0; k < ARRAY_LEN(mine); k++)
        free(mine[k]);
    return NULL;
}

static void *purge(void *unused)
{
    while (purging) {
        heap_purge(purge_decay, NULL);
        sched_yield();
    }
    return unused;
}

static void nothing_is_handed_out_twice(void)
{
    pthread_t thread[12], purger;
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    empty();
    size_t in_use = span_counts().in_use_bytes;
    purging = true;
    EXPECT_EQ(pthread_create(&purger, NULL, purge, NULL), 0);
    for (uintptr_t i = 0; i < ARRAY_LEN(thread); i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, use, (void *)(i + 1)), 0);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    purging = false;
    EXPECT_EQ(pthread_join(purger, NULL), 0);
    empty();
    EXPECT_MSG(span_counts().in_use_bytes <= in_use + ((size_t)1 << 20), "spans were lost"); /* superblocks of libc's */
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(120);
    rounds = unit_option(argc, argv, "--rounds", 10000);
    unit_stay_on_one_cpu(); /* and so in one cid's slots */
    free(malloc(1));
    other_lengths_lie_there_too();
    a_freed_one_is_had_again();
    what_is_kept_is_bounded();
    the_last_ones_stay();
    they_count_as_free();
    they_go_back();
    a_second_free_is_seen();
    a_child_has_them_free(fork);
    if (_Fork != NULL)
        a_child_has_them_free(_Fork);
    handlers_make_children(fork);
    if (_Fork != NULL)
        handlers_make_children(_Fork);
    nothing_is_handed_out_twice();
    return 0;
}
