/* SPDX-License-Identifier: MIT
 *
 * What a slow path does is bounded whatever there is: it relists so much of a pending stack, looks at so many nearly
 * full superblocks, and goes on there the next time; and it waits for no class's lock but its own.
 */
#include "heap/remote.h"
#include "inspect.h"
#include "unit.h"

#define LOOK_FURTHER 64

static void relist(struct heap *h, struct superblock *s)
{
    lock_take(&h->lock);
    heap_relist(h, s);
    lock_release(&h->lock);
}

/* A superblock without room that `h` lists; its blocks are nobody's. */
static struct superblock *full(struct heap *h, unsigned c)
{
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    while (test_take(s) != NULL)
        continue;
    relist(h, s);
    EXPECT_EQ(s->group, group_nearly_full);
    return s;
}

static void a_pending_stack_is_flushed_by_parts(unsigned c)
{
    enum { count = 3 * FLUSH_MAX / 2 };
    struct heap *h = test_heap_new(true);
    struct superblock *s[count];
    test_heap_bind(h);
    for (unsigned i = 0; i < count; i++)
        s[i] = full(h, c);
    for (unsigned i = 0; i < count; i++)
        heap_push_pending(h, s[i]);
    for (unsigned left = count; left > 0;) {
        EXPECT(heap_has_pending(h));
        lock_take(&h->lock);
        heap_flush_pending(h);
        lock_release(&h->lock);
        left -= min_size(left, FLUSH_MAX);
        unsigned pending = 0;
        for (unsigned i = 0; i < count; i++)
            pending += s[i]->x_pending_next != 0;
        EXPECT_EQ(pending, left);
    }
    EXPECT(!heap_has_pending(h));
    test_heap_bind(NULL);
}

/* The one with room is found in as many looks as it takes to get there, and not in less. */
static void a_look_goes_on_where_the_last_one_ended(unsigned c)
{
    enum { count = 3 * LOOK_FURTHER };
    struct heap *h = test_heap_new(true);
    struct superblock *s[count];
    for (unsigned i = 0; i < count; i++)
        s[i] = full(h, c);
    /* Listed last is first: s[count - 1] is looked at first. */
    struct superblock *there = s[LOOK_FURTHER / 2];
    void *block = superblock_block(there, 0);
    EXPECT_EQ(remote_push(there, block), remote_pushed_armed);
    lock_take(&h->lock);
    EXPECT(heap_find_fullest(h, c) == NULL);
    EXPECT(heap_find_further(h, c) == NULL);
    EXPECT_EQ(h->class[c].look, superblock_first_slice(s[2 * LOOK_FURTHER - 1]) + 1);
    heap_list_remove(h, s[2 * LOOK_FURTHER - 1]); /* where it would go on */
    superblock_clear_owner(s[2 * LOOK_FURTHER - 1]);
    EXPECT(heap_find_further(h, c) == NULL);
    EXPECT(heap_find_further(h, c) == there);
    lock_release(&h->lock);
    relist(h, s[2 * LOOK_FURTHER - 1]);
}

/* One lock for all would be waited for until the watchdog comes. */
static void classes_have_global_locks_of_their_own(unsigned c, unsigned other)
{
    struct superblock *s = test_superblock_new(other);
    test_carve_all(s);
    EXPECT(global_heap_of(c) != global_heap_of(other));
    unit_hold(&global_heap_of(c)->lock);
    global_adopt(s);
    EXPECT(global_take(other, heap_find_fullest) == s);
    unit_let_go(&global_heap_of(c)->lock);
    test_superblock_drop(s);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    a_pending_stack_is_flushed_by_parts(size_class_of(1024));
    a_look_goes_on_where_the_last_one_ended(size_class_of(1000));
    classes_have_global_locks_of_their_own(size_class_of(64), size_class_of(80));
    return 0;
}
