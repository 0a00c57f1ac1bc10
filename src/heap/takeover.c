/* SPDX-License-Identifier: MIT
 *
 * Heaps of cids (in cpu mode, of cpus) that became inactive.  A thread that is moved to another cpu changes its cid as
 * soon as a second task shares the address space; its blocks then belong to a heap it no longer runs on, every free of
 * them is remote, and what is free in that heap is stranded.  Two remedies: exchange the two cids' heaps (the thread
 * has its blocks back; two stores and a fence), or take single superblocks.
 *
 * Whether a heap is inactive can only be guessed, and a wrong guess is harmless: it costs the thread that was running
 * after all a restarted section and its locality.  There are two guesses.  A thread that finds itself on another heap
 * than at its last slow path has left that one; if no slow path was run on it since, and its lists do not change for a
 * moment, nobody else is on it.  And any heap is inactive whose slow paths and active lists have not changed for
 * INACTIVE_NS, longer than a thread is likely to compute without allocating.  Single superblocks that are not active
 * are taken sooner: from a heap at rest, which had no slow path for AT_REST_NS and so has not looked at what came back.
 *
 * A refill looks at LOOKS_MAX other heaps at most, the next ones each time.
 *
 * Where the fence is refused (by a seccomp filter) nothing of this can be done: every heap stays where it is, and what
 * is free in it waits for a thread on its cid.
 */
#include "heap/heap.h"

#include "base/tally.h"
#include "os/os.h"

#define INACTIVE_NS 10000000u
#define AT_REST_NS 1000000u
/* Other heaps a refill looks at, when it would take a superblock and when it would take what is pending. */
#define LOOKS_MAX 8u
/* Superblocks moved by one merge, or taken from one pending stack, while a lock is held. */
#define MERGE_MAX 128u
#define PENDING_TAKEN_MAX 64u
/* Remote frees between two looks at the clock. */
#define LOOK_EVERY 64u
/* How long a heap that was left is watched: some microseconds. */
#define WATCH_PAUSES 128

/* The heap of the thread's last slow path, or the one it has just brought along, and how often that heap had been
 * refilled by then.  All thread-local variables together are 16 bytes at most. */
THREAD_LOCAL uint16_t last_heap; /* its number + 1 */
THREAD_LOCAL uint16_t last_refills;

static struct heap *last(void)
{
    return last_heap == 0 ? NULL : heap_list[last_heap - 1];
}

static void set_last(const struct heap *h)
{
    last_heap = (uint16_t)(h->number + 1);
    last_refills = (uint16_t)h->refills;
}

#ifdef SUTLER_TEST_CIDS
void heap_forget_last(void)
{
    last_heap = 0;
}
#endif

_Atomic uint64_t takeover_count;

/* Changes with every slow path. */
static uint32_t slow_paths_of(const struct heap *h)
{
    return (uint32_t)(__atomic_load_n(&h->refills, __ATOMIC_RELAXED) +
                      __atomic_load_n(&h->remote_frees, __ATOMIC_RELAXED));
}

/* Changes with most sections too: it is made of the heads of all active lists. */
static uint32_t activity_of(const struct heap *h)
{
    uint64_t activity = h->refills;
    TALLY(reads);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const struct superblock *s = __atomic_load_n(&h->active[c], __ATOMIC_RELAXED);
        activity += superblock_freelist(s);
    }
    return (uint32_t)(activity ^ activity >> 32);
}

/* True if the value has been `now` for `for_ns`.  Threads that ask at once may mix up *last and *since_ns: that is only
 * a wrong guess. */
static bool is_unchanged(uint32_t *last, uint64_t *since_ns, uint32_t now, uint64_t now_ns, uint64_t for_ns)
{
    if (now != __atomic_load_n(last, __ATOMIC_RELAXED)) {
        __atomic_store_n(last, now, __ATOMIC_RELAXED);
        __atomic_store_n(since_ns, now_ns, __ATOMIC_RELAXED);
        return false;
    }
    return (int64_t)(now_ns - __atomic_load_n(since_ns, __ATOMIC_RELAXED)) >= (int64_t)for_ns; /* it may be later */
}

/* Costs one line of memory to find out. */
static bool is_without_slow_path(struct heap *h, uint64_t now_ns, uint64_t for_ns)
{
    return is_unchanged(&h->slow_paths, &h->slow_paths_since_ns, slow_paths_of(h), now_ns, for_ns);
}

/* False where nothing could be done about it.  Asks first for what is cheap to find out and decides most cases. */
static bool is_inactive(struct heap *h)
{
    uint64_t now_ns = os_now_ns();
    return rcs_has_fence() && is_without_slow_path(h, now_ns, INACTIVE_NS) &&
           is_unchanged(&h->activity, &h->activity_since_ns, activity_of(h), now_ns, INACTIVE_NS);
}

unsigned heap_note_idle(unsigned first, unsigned end)
{
    unsigned idle = 0;
    for (unsigned i = first; i < end; i++) {
        struct heap *h = heap_list[i];
        uint32_t slow_paths = slow_paths_of(h);
        h->is_idle = slow_paths == h->pass_slow_paths;
        h->pass_slow_paths = slow_paths;
        heap_halve_retaken(h);
        idle += h->is_idle;
    }
    return idle;
}

void heap_forget_idle(unsigned end)
{
    for (unsigned i = 0; i < end; i++)
        heap_list[i]->is_idle = false;
}

/* True if `h` seems to list a superblock of class `c` that is not nearly full. */
static bool has_superblock(const struct heap *h, unsigned c)
{
    for (enum group g = group_eighth; g <= group_empty; g++)
        if (__atomic_load_n(&h->class[c].head[g], __ATOMIC_RELAXED) != 0)
            return true;
    return false;
}

/* Looks at the LOOKS_MAX heaps after *at, and locks the first that is at rest, `has` something, and whose lock is free.
 * NULL if none will do. */
static struct heap *lock_resting(const struct heap *h, uint16_t *at, bool (*has)(const struct heap *, unsigned),
                                 unsigned c)
{
    unsigned total = atomic_load_explicit(&heap_total, memory_order_acquire);
    for (unsigned i = 0; i < LOOKS_MAX && i < total; i++) {
        *at = (uint16_t)(*at + 1u < total ? *at + 1u : 0);
        struct heap *other = heap_list[*at];
        TALLY(looks);
        if (other != h && has(other, c) && is_without_slow_path(other, os_now_ns(), AT_REST_NS) &&
            lock_try(&other->lock))
            return other;
    }
    return NULL;
}

struct superblock *heap_take_from_resting(struct heap *h, unsigned c)
{
    struct heap *other = rcs_has_fence() ? lock_resting(h, &h->take_at, has_superblock, c) : NULL;
    if (other == NULL)
        return NULL;
    struct superblock *s = heap_detach(other, heap_find_fullest(other, c));
    lock_release(&other->lock);
    return s;
}

struct superblock *heap_take_from_any(unsigned c)
{
    struct superblock *s = NULL;
    unsigned total = rcs_has_fence() ? atomic_load_explicit(&heap_total, memory_order_acquire) : 0;
    for (unsigned i = 0; s == NULL && i < total; i++) {
        struct heap *other = heap_list[i];
        lock_take(&other->lock);
        s = heap_detach(other, heap_find_any(other, c));
        lock_release(&other->lock);
    }
    return s != NULL ? s : global_take(c, heap_find_any);
}

static bool exchange(struct heap *h, struct heap *other)
{
    bool fenced = false;
    lock_take(&binding_lock);
    unsigned here = h->x_slot, there = other->x_slot;
    if (here != SLOT_NONE && there != SLOT_NONE && here != there) {
        __atomic_store_n(&heap_of_cid[here], &empty_heap, __ATOMIC_RELEASE);
        __atomic_store_n(&heap_of_cid[there], &empty_heap, __ATOMIC_RELEASE);
        fenced = rcs_fence(); /* no thread is inside a section of either now; if refused, all stays as it was */
        if (fenced) {
            h->x_slot = there;
            other->x_slot = here;
            atomic_fetch_add_explicit(&takeover_count, 1, memory_order_relaxed);
        }
        __atomic_store_n(&heap_of_cid[here], fenced ? other : h, __ATOMIC_RELEASE);
        __atomic_store_n(&heap_of_cid[there], fenced ? h : other, __ATOMIC_RELEASE);
    }
    lock_release(&binding_lock);
    return fenced;
}

static bool is_still(const struct heap *h)
{
    uint32_t before = activity_of(h);
    for (int i = 0; i < WATCH_PAUSES; i++)
        cpu_relax();
    return activity_of(h) == before;
}

static unsigned superblocks_of(const struct heap *h)
{
    unsigned count = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        count += __atomic_load_n(&h->class[c].listed, __ATOMIC_RELAXED) + (h->active[c] != &empty_superblock);
    return count;
}

/* True if the caller, now on `h`, seems to have been the last to use `left`: it was not refilled since the caller's
 * last slow path, and its lists do not change.  False where nothing could be done about it. */
static bool is_abandoned(const struct heap *left, const struct heap *h, uint16_t refills)
{
    const uint16_t own = 1;
    return left != NULL && left != h && rcs_has_fence() && (uint16_t)(left->refills - refills) <= own &&
           superblocks_of(left) >= superblocks_of(h) && is_still(left);
}

struct heap *heap_rebind_after_migration(struct heap *h)
{
    struct heap *left = last();
    uint16_t refills = last_refills;
    set_last(h);
    if (!is_abandoned(left, h, refills) || !exchange(h, left))
        return h;
    set_last(left); /* if the caller was moved again meanwhile, its next slow path rebinds once more */
    return heap_here();
}

static void chain_offline(struct heap *h, struct superblock *s, uint32_t *chain)
{
    heap_take_offline(h, s);
    s->slice.next = *chain;
    *chain = superblock_first_slice(s);
}

/* Gives `h` a chain of superblocks taken offline from `other`.  If `shares`, the mostly free ones go to the global
 * heap: a thread that is moved to and fro would otherwise leave some in one heap each time, and take fresh ones in the
 * other. */
static void bring_online(struct heap *h, struct heap *other, uint32_t chain, bool shares)
{
    bool fenced = chain != SLICE_NONE && rcs_fence();
    while (chain != SLICE_NONE) {
        struct superblock *s = superblock_at_slice(chain);
        chain = s->slice.next;
        s->slice.next = SLICE_NONE;
        if (!fenced)
            heap_undo_offline(other, s);
        else if (shares && superblock_is_mostly_free(s, s->freelist))
            global_adopt(s);
        else
            heap_relist(h, s);
    }
}

/* Takes up to MERGE_MAX superblocks (of each class at least one) offline, chained through `next`. */
static uint32_t take_many_offline(struct heap *h)
{
    uint32_t chain = SLICE_NONE;
    unsigned left = MERGE_MAX;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (h->active[c] != &empty_superblock)
            chain_offline(h, h->active[c], &chain);
        for (enum group g = group_nearly_full; g < group_count; g++)
            for (; h->class[c].head[g] != 0 && left > 0; left--)
                chain_offline(h, superblock_at_slice(h->class[c].head[g] - 1), &chain);
    }
    return chain;
}

/* Takes up to PENDING_TAKEN_MAX pending superblocks offline. */
static uint32_t take_pending(struct heap *h)
{
    uint32_t chain = SLICE_NONE;
    struct superblock *s;
    for (unsigned left = PENDING_TAKEN_MAX; left > 0 && (s = heap_pop_pending(h)) != NULL; left--)
        if (heap_has_to_relist(h, s))
            chain_offline(h, s, &chain);
    return chain;
}

static bool has_pending(const struct heap *h, unsigned c)
{
    (void)c; /* of whatever class */
    return heap_has_pending(h);
}

bool heap_take_pending_of_resting(struct heap *h)
{
    struct heap *other = rcs_has_fence() ? lock_resting(h, &h->pending_at, has_pending, 0) : NULL;
    if (other == NULL)
        return false;
    uint32_t chain = take_pending(other);
    lock_release(&other->lock);
    bring_online(h, other, chain, false);
    return chain != SLICE_NONE;
}

/* Moves the superblocks of `other` to `h`, or to the global heap. */
static void merge(struct heap *h, struct heap *other)
{
    lock_take(&h->lock);
    if (lock_try(&other->lock)) {
        uint32_t chain = take_many_offline(other);
        lock_release(&other->lock);
        bring_online(h, other, chain, true);
        atomic_fetch_add_explicit(&takeover_count, 1, memory_order_relaxed);
    }
    lock_release(&h->lock);
}

/* Most of the thread's blocks are in the larger heap, so that one is brought to the thread's cid.  If heaps were
 * exchanged whatever their sizes, a thread between two heaps would free remotely for ever. */
static void take_over_if_inactive(struct heap *h, struct heap *other)
{
    if (!is_inactive(other))
        return;
    if (superblocks_of(other) > superblocks_of(h))
        exchange(h, other);
    else
        merge(h, other);
}

bool heap_wants_reclaim(struct heap *h, const struct heap *other, unsigned blocks)
{
    if (h == &empty_heap)
        return true;
    uint64_t before = h->remote_frees;
    h->remote_frees = before + blocks;
    return (before + blocks) / LOOK_EVERY != before / LOOK_EVERY || other == last();
}

void heap_reclaim_if_inactive(struct heap *h, struct heap *other)
{
    if (other == last())
        heap_rebind_after_migration(h);
    else if (other != NULL && !heap_is_global(other))
        take_over_if_inactive(h, other);
}
