/* SPDX-License-Identifier: MIT
 *
 * Relisting: a superblock that left the active slot, had room again, emptied by a step, or got remote frees is put
 * where it belongs.
 *
 * Emptiness is known in steps without a counter per operation: `threshold` is the count of free blocks at
 * which the next step begins, and the free that reaches it calls back.  It is armed by a section that compares the
 * list (a plain store loses frees that happen between reading the count and arming), and read by free inside its
 * section (outside, a free between commit and read would be missed).  A notification is a hint: everything is looked
 * at anew under the lock.
 *
 * Blowup bound (Hoard's invariant, by class): a heap keeps surplus superblocks, those at least three quarters free,
 * up to SURPLUS_FLOOR or a quarter of the class's superblocks, and more while it is seen to take memory back (decision
 * 48).  Beyond that an empty one becomes a plain span again and a mostly free one goes to the global heap, if another
 * heap had to look beyond its own superblocks since the last one went there.  Hoard does not ask; but whoever takes a
 * large structure apart would then free the last quarter of each superblock as a remote free, a compare-and-swap each,
 * for nobody's good (decision 26).
 */
#include "heap/audit.h"
#include "heap/heap.h"
#include "heap/lend.h"
#include "heap/remote.h"

#define SURPLUS_FLOOR        16u
#define SURPLUS_FLOOR_SLICES 32u
#define RETAKEN_SLICES_MAX   128u
#define ATTEMPTS_MAX 16
#define AUDIT_PACE   8 /* an audit reads a whole superblock */

/* How many eighths of the superblock are spare where the next group begins. */
static const uint8_t group_eighths[group_mostly_free] = {
    [group_nearly_full] = 1, [group_eighth] = 2, [group_quarter] = 4, [group_half] = 6};

static enum group group_for(const struct superblock *s, uint64_t list)
{
    unsigned spare = superblock_spare(s, list);
    enum group group = group_nearly_full;
    if (superblock_live(s, list) == 0)
        return group_empty;
    while (group < group_mostly_free && spare * 8 >= s->blocks * group_eighths[group])
        group++;
    return group;
}

/* The count of free blocks at which the superblock leaves its group upwards. */
static unsigned next_step(const struct superblock *s, enum group group)
{
    if (group == group_empty)
        return THRESHOLD_NEVER;
    if (group == group_mostly_free)
        return s->carved;
    unsigned spare = (s->blocks * group_eighths[group] + 7u) / 8;
    unsigned uncarved = superblock_is_carvable(s) ? superblock_capacity(s) - s->carved : 0;
    unsigned count = spare > uncarved ? spare - uncarved : 1;
    return count < s->carved ? count : s->carved;
}

enum rcs_result heap_collect(struct heap *h, struct superblock *s)
{
    ASSERT(lock_is_mine(&h->lock) || superblock_is_detached(s));
    if (freelist_count(atomic_load_explicit(&s->x_remote, memory_order_relaxed)) == 0)
        return rcs_done;
    uint64_t chain = remote_take(s, false);
    enum rcs_result result;
    do {
        /* Linked from an empty list, the chain is a list as it stands. */
        uint64_t list = superblock_freelist(s), joined = list == 0 ? chain : superblock_join(s, chain, list);
        if (joined == 0) { /* the chain is dropped; its blocks count as live for ever, so s is never released */
            damage_report("free", "in superblock", superblock_start(s), "a freed block was written to");
            return rcs_done;
        }
        result = heap_commit(h, s, &s->freelist, list, &s->freelist, joined);
    } while (result == rcs_changed);
    if (result != rcs_done)
        remote_return(s, superblock_join(s, chain, 0));
    return result;
}

/* False if remote frees came in: then there is more to collect. */
static bool arm(struct superblock *s)
{
    uint64_t idle = 0;
    return atomic_compare_exchange_strong(&s->x_remote, &idle, REMOTE_ARMED) || idle == REMOTE_ARMED;
}

/* Detaches a superblock of `h`; false if a block of it was taken or freed meanwhile. */
static bool give_up(struct heap *h, struct superblock *s, uint64_t list)
{
    if (heap_commit(h, s, &s->freelist, list, &s->owner, 0) != rcs_done)
        return false;
    heap_list_remove(h, s);
    return true;
}

bool heap_detach_listed(struct heap *h, struct superblock *s, uint64_t list)
{
    uint64_t armed = REMOTE_ARMED;
    if (!atomic_compare_exchange_strong(&s->x_remote, &armed, 0))
        return false;
    if (give_up(h, s, list))
        return true;
    heap_push_pending(h, s); /* it is no longer armed, so no free would have it relisted */
    return false;
}

void heap_give_back(struct superblock *s, uint64_t list)
{
    if (!superblock_quarantine_if(superblock_check_all_free(s, list), s, "free"))
        superblock_give(s);
}

bool heap_release(struct heap *h, struct superblock *s)
{
    const uint64_t list = superblock_freelist(s);
    if (freelist_count(list) != s->carved || !heap_detach_listed(h, s, list))
        return false;
    heap_give_back(s, list);
    return true;
}

/* Surplus superblocks a heap may keep however few it has: 1 MiB of short ones, 2 MiB of long ones, or one. */
static unsigned surplus_floor(unsigned c)
{
    return (unsigned)min_size(SURPLUS_FLOOR, max_size(1, SURPLUS_FLOOR_SLICES / size_class[c].slices));
}

/* By class: the number + 1 of the last heap that looked beyond its own superblocks; 0: none since one was passed on. */
static _Atomic uint32_t wanted_by[CLASS_COUNT];

void global_want(const struct heap *h, unsigned c)
{
    if (atomic_load_explicit(&wanted_by[c], memory_order_relaxed) != h->number + 1)
        atomic_store_explicit(&wanted_by[c], h->number + 1, memory_order_relaxed);
}

static bool is_wanted_elsewhere(const struct heap *h, unsigned c)
{
    uint32_t by = atomic_load_explicit(&wanted_by[c], memory_order_relaxed);
    return by != 0 && by != h->number + 1;
}

/* What a heap released it may want again.  One that took memory back that has pages may keep as much surplus, of all
 * classes together, and no more than RETAKEN_SLICES_MAX: what it keeps is lost to other heaps until it rests. */
static bool keeps_empty_ones(const struct heap *h)
{
    return h->surplus_slices <= atomic_load_explicit(&h->retaken_slices, memory_order_relaxed);
}

void heap_note_retaken(struct heap *h, unsigned slices)
{
    const size_t now = atomic_load_explicit(&h->retaken_slices, memory_order_relaxed) + (size_t)slices;
    atomic_store_explicit(&h->retaken_slices, (uint32_t)min_size(RETAKEN_SLICES_MAX, now), memory_order_relaxed);
}

void heap_halve_retaken(struct heap *h)
{
    const uint32_t before = atomic_load_explicit(&h->retaken_slices, memory_order_relaxed);
    if (before != 0)
        atomic_store_explicit(&h->retaken_slices, before / 2, memory_order_relaxed);
}

/* An empty superblock of the class goes first, even if another one became surplus: one that is mostly free may still
 * fill or empty here. */
static void pass_on_surplus(struct heap *h, struct superblock *s, uint64_t list)
{
    const struct class_lists *lists = &h->class[s->class];
    if (lists->surplus <= max_size(surplus_floor(s->class), lists->listed / 4))
        return;
    if (lists->head[group_empty] != 0 && !keeps_empty_ones(h))
        heap_release(h, superblock_at_slice(lists->head[group_empty] - 1));
    else if (s->group == group_mostly_free && !heap_is_global(h) && is_wanted_elsewhere(h, s->class) &&
             give_up(h, s, list)) {
        atomic_store_explicit(&wanted_by[s->class], 0, memory_order_relaxed);
        global_adopt(s);
    }
}

void heap_relist(struct heap *h, struct superblock *s)
{
    ASSERT(lock_is_mine(&h->lock));
    ASSERT(h->active[s->class] != s);
    ASSERT(superblock_owner(s) == h || superblock_is_detached(s));
    AUDIT(h->refills % AUDIT_PACE == 0 ? superblock_check(s) : NULL);
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        if (heap_collect(h, s) != rcs_done)
            break;
        uint64_t list = superblock_freelist(s);
        enum group group = group_for(s, list);
        enum rcs_result armed =
            heap_commit(h, s, &s->freelist, list, &s->threshold_and_sizes, with_threshold(s, next_step(s, group)));
        if (armed == rcs_changed)
            continue;
        if (armed != rcs_done)
            break;
        if (s->group != group_none)
            heap_list_remove(h, s);
        heap_list_insert(h, s, group);
        if (superblock_is_detached(s))
            superblock_set_owner(s, h);
        AUDIT(superblock_check_listed(s, h));
        if (arm(s)) {
            pass_on_surplus(h, s, list);
            return;
        }
    }
    /* The thread was moved, or interrupted time and again: the heap's next slow path goes on from here. */
    if (superblock_is_detached(s))
        superblock_set_owner(s, h);
    heap_push_pending(h, s);
}

bool heap_has_to_relist(struct heap *h, struct superblock *s)
{
    ASSERT(lock_is_mine(&h->lock));
    if (slice_kind(&s->slice) != slice_superblock)
        return false;
    struct heap *owner = superblock_owner(s); /* none: whoever has it detached will relist it */
    if (owner != NULL && owner != h)
        heap_push_pending(owner, s);
    return owner == h && h->active[s->class] != s; /* one that is active: its next refill collects */
}

void heap_relist_pending(struct heap *h, struct superblock *s)
{
    if (heap_has_to_relist(h, s))
        heap_relist(h, s);
}

void heap_flush_pending(struct heap *h)
{
    ASSERT(lock_is_mine(&h->lock));
    struct superblock *s;
    for (int i = 0; i < FLUSH_MAX && (s = heap_pop_pending(h)) != NULL; i++)
        heap_relist_pending(h, s);
}

/* ---- the global heap: superblocks that no slot owns ----
 *
 * Local heaps give it their surplus and take the fullest back, so that the others can run empty.  It is a heap like any
 * other, except that no section runs on it: all frees into its superblocks are remote, and whoever holds its lock has
 * them detached. */

void global_adopt(struct superblock *s)
{
    struct heap *global = global_heap_of(s->class);
    lock_take(&global->lock);
    heap_flush_pending(global);
    heap_relist(global, s);
    lock_release(&global->lock);
}

struct superblock *global_detach(unsigned c, struct superblock *(*find)(struct heap *, unsigned))
{
    struct heap *global = global_heap_of(c);
    ASSERT(lock_is_mine(&global->lock));
    heap_flush_pending(global);
    struct superblock *s = find(global, c);
    if (s != NULL) {
        heap_list_remove(global, s);
        superblock_clear_owner(s);
    }
    return s;
}

struct superblock *global_take(unsigned c, struct superblock *(*find)(struct heap *, unsigned))
{
    struct heap *global = global_heap_of(c);
    if (__atomic_load_n(&global->class[c].listed, __ATOMIC_RELAXED) == 0 && !heap_has_pending(global))
        return NULL;
    lock_take(&global->lock);
    struct superblock *s = global_detach(c, find);
    lock_release(&global->lock);
    return s;
}
