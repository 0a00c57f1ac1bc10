/* SPDX-License-Identifier: MIT
 *
 * The short paths of lock mode (core/locked.h): whom they leave to the slow path, and that nobody waits in a free, or
 * in a malloc for a heap that is not where the thread runs.
 */
#include "core/locked.h"

#include <pthread.h>

#include "inspect.h"
#include "unit.h"

#define SIZE 64

/* With as many blocks on its list that the next malloc is a pop. */
static struct superblock *active(void)
{
    free(malloc(SIZE));
    struct superblock *s = heap_here()->active[size_class_of(SIZE)];
    EXPECT(freelist_count(s->freelist) > 2);
    return s;
}

static void a_pair_is_a_pop_and_a_push(void)
{
    struct superblock *s = active();
    uint64_t list = s->freelist, refills = heap_here()->refills;
    void *p = malloc(SIZE);
    EXPECT(p == freelist_top(list) && freelist_count(s->freelist) + 1 == freelist_count(list));
    free(p);
    EXPECT(s->freelist == list && heap_here()->refills == refills);
    EXPECT(locked_push(p, s) == hot_double && s->freelist == list);
    EXPECT(!in_slow_path && !lock_is_held(&heap_here()->lock));
}

/* ---- left to the slow path ---- */

static void who_was_interrupted_is_refused(void)
{
    struct superblock *s = active();
    void *p = malloc(SIZE);
    EXPECT(slow_enter());
    EXPECT(locked_pop(size_class_of(SIZE)) == NULL && locked_push(p, s) == hot_aborted);
    EXPECT(in_slow_path);
    slow_leave();
    free(p);
}

/* A child that has not recovered: another thread of it may be about to, and would not expect a lock to be taken. */
static void who_has_to_recover_is_refused(void)
{
    struct superblock *s = active();
    void *p = malloc(SIZE);
    atomic_store(child_mark, child_new);
    EXPECT(locked_pop(size_class_of(SIZE)) == NULL && locked_push(p, s) == hot_aborted);
    atomic_store(child_mark, child_known);
    free(p);
}

/* ---- nobody waits ---- */

static _Atomic bool may_free, has_freed;

static void *give(void *p)
{
    while (!may_free)
        sched_yield();
    free(p);
    has_freed = true;
    return NULL;
}

static void a_free_does_not_wait(void)
{
    pthread_t thread;
    struct superblock *s = active();
    struct heap *h = heap_here();
    unsigned before = freelist_count(s->x_remote);
    void *p = malloc(SIZE);
    EXPECT_EQ(pthread_create(&thread, NULL, give, p), 0);
    lock_take(&h->lock);
    may_free = true;
    while (!has_freed)
        sched_yield();
    lock_release(&h->lock);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(freelist_count(s->x_remote), before + 1);
    EXPECT(freelist_top(s->x_remote) == p);
}

static unsigned another_slot(void)
{
    return sync_slot() == 0 ? 1 : 0;
}

static void a_malloc_goes_where_it_runs(void)
{
    struct superblock *s = active();
    unsigned slot = another_slot();
    struct heap *there = heap_of_cid[slot], *other = test_heap_new(true);
    heap_of_cid[slot] = other;
    sync_slot_last = slot;
    unit_hold(&other->lock); /* somebody runs there, and was interrupted */
    void *p = malloc(SIZE);
    EXPECT(sync_slot_last != slot && superblock_of(p) == s);
    unit_let_go(&other->lock);
    heap_of_cid[slot] = there;
    free(p);
}

static void *begin(void *unused)
{
    EXPECT_EQ(sync_slot_last, SLOT_MAX);
    free(malloc(SIZE));
    EXPECT(sync_slot_last < slot_count);
    return unused;
}

static void a_new_thread_asks_first(void)
{
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, begin, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    unit_stay_on_one_cpu();
    a_pair_is_a_pop_and_a_push();
    who_was_interrupted_is_refused();
    who_has_to_recover_is_refused();
    a_new_thread_asks_first();
    a_malloc_goes_where_it_runs();
    a_free_does_not_wait();
    expect_heaps_sound();
    return 0;
}
