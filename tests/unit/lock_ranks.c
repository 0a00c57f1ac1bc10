/* SPDX-License-Identifier: MIT
 *
 * Debug builds: a thread that takes a lock of the same rank as one it holds, or of a lower one, dies of it, whether the
 * lock is free or not; so does one that releases a lock it does not hold.  Trying is allowed in any order.
 */
#include "os/lock.h"

#include <pthread.h>

#include "death.h"

#ifdef SUTLER_DEBUG
static struct lock pass = LOCK_FREE(rank_pass), heap = LOCK_FREE(rank_heap), other_heap = LOCK_FREE(rank_heap),
                   global = LOCK_FREE(rank_global_heap), span = LOCK_FREE(rank_span),
                   mapping = LOCK_FREE(rank_mapping), tried = LOCK_FREE(rank_tried), unranked;

static void in_order(void)
{
    struct lock *const all[] = {&pass, &heap, &global, &span};
    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        lock_take(all[i]);
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) /* released in any order */
        lock_release(all[i]);
    lock_take(&pass);
    lock_release_quickly(&pass);
    lock_take(&mapping);
    lock_release(&mapping);
}

static void lower_after_higher(void)
{
    lock_take(&span);
    lock_take(&heap);
}

static void lower_after_one_of_several(void)
{
    lock_take(&pass);
    lock_take(&span);
    lock_release(&pass);
    lock_take(&global);
}

static void second_of_a_rank(void)
{
    lock_take(&heap);
    lock_take(&other_heap);
}

static void span_and_mapping(void)
{
    lock_take(&span);
    lock_take(&mapping);
}

static void same_again(void)
{
    lock_take(&heap);
    lock_take(&heap); /* it would wait for itself */
}

static void tried_out_of_order(void)
{
    lock_take(&heap);
    EXPECT(lock_try(&other_heap) && lock_try(&pass));
    lock_release(&heap);
    lock_release(&other_heap);
    lock_release(&pass);
    lock_take(&heap); /* nothing is held any more */
    lock_release(&heap);
}

/* As by a signal handler that comes while its thread holds it. */
static void all_below_one_that_is_only_tried(void)
{
    EXPECT(lock_try(&tried));
    in_order();
    lock_take(&mapping);
    EXPECT(!lock_try(&tried));
    lock_release(&mapping);
    lock_release(&tried);
}

static void one_that_is_only_tried(void)
{
    lock_take(&tried);
}

static void taken_after_one_that_was_tried(void)
{
    lock_take(&heap);
    EXPECT(lock_try(&other_heap));
    lock_release(&heap);
    lock_take(&heap); /* of the rank of the one still held */
}

static void released_twice(void)
{
    lock_take(&heap);
    lock_release(&heap);
    lock_release(&heap);
}

static void *take_heap(void *unused)
{
    lock_take(&heap);
    return unused;
}

static void released_by_another_thread(void)
{
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, take_heap, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT(lock_is_held(&heap) && !lock_is_mine(&heap));
    lock_release(&heap);
}

static void without_a_rank(void)
{
    lock_take(&unranked);
}

int main(void)
{
    unit_watchdog(60);
    EXPECT_SURVIVAL(in_order);
    EXPECT_SURVIVAL(tried_out_of_order);
    EXPECT_SURVIVAL(all_below_one_that_is_only_tried);
    EXPECT_DEATH(one_that_is_only_tried, "rank_tried");
    EXPECT_DEATH(lower_after_higher, "lock_ranks_held");
    EXPECT_DEATH(lower_after_one_of_several, "lock_ranks_held");
    EXPECT_DEATH(second_of_a_rank, "lock_ranks_held");
    EXPECT_DEATH(span_and_mapping, "lock_ranks_held");
    EXPECT_DEATH(same_again, "lock_ranks_held");
    EXPECT_DEATH(taken_after_one_that_was_tried, "lock_ranks_held");
    EXPECT_DEATH(released_twice, "lock_is_mine");
    EXPECT_DEATH(released_by_another_thread, "lock_is_mine");
    EXPECT_DEATH(without_a_rank, "rank");
    return 0;
}
#else
int main(void)
{
    SKIP("only debug builds check the ranks of locks");
}
#endif
