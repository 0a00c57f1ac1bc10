/* SPDX-License-Identifier: MIT
 *
 * Heaps: sets of superblocks.  A local heap belongs to a slot of heap_of_cid (a cid, in rcs mode) and has at most one
 * active superblock per class, which malloc takes from; its other superblocks are listed by class and fullness group.
 * The global heap belongs to no slot; it is several, each with the lock of its own, by class.  (Hoard; LFMalloc section
 * 3.2; Bloemendal & Scott 2013.)
 *
 * A superblock owned by a heap is in exactly one place: active, on a list of the heap, or (when a slow path was moved
 * to another cid half-way) only on the pending stack.  The pending stack holds superblocks that need relisting, pushed
 * to by anyone and emptied under the heap's lock.
 *
 * Everything here is called with the heap's lock held, unless it says otherwise.  The order of locks is the table of
 * ranks in os/lock.h; the lock of a second local heap is only ever tried.
 */
#ifndef SUTLER_HEAP_HEAP_H
#define SUTLER_HEAP_HEAP_H

#include "heap/remote.h"
#include "heap/superblock.h"
#include "os/lock.h"
#include "rcs/rcs.h"

#define SLOT_NONE UINT32_MAX
#define HEAPS_MAX (SLOT_MAX + 1)

struct class_lists {
    uint32_t head[group_count]; /* slice number + 1; 0 is empty */
    uint32_t listed;            /* superblocks on them */
    uint32_t surplus;           /* of those, in group_mostly_free and group_empty */
    uint32_t look;              /* the nearly full one where a longer look goes on, likewise; 0: at the first */
};

struct heap {
    struct lock lock;
    _Atomic uint32_t x_pending; /* slice number + 2 of the first; 0 is empty */
    uint32_t flushing;          /* of what was taken off that stack, the first not relisted yet, likewise */
    _Atomic uint32_t x_slot;    /* its index in heap_of_cid, or SLOT_NONE; written under the binding lock */
    uint32_t number;
    uint16_t take_at, pending_at; /* takeover.c: the numbers of the heaps it looked at last */
    uint32_t regain_rest;       /* regain.c: for so many slices it does not look again */
    uint32_t outbox_look;       /* in a pass: what the outbox looked like at the last look */
    uint64_t refills;
    uint64_t remote_frees;      /* blocks of other heaps freed from this heap's slot; racy, a statistic and a pace */
    uint32_t slow_paths, activity; /* takeover.c: what its slow paths and its lists looked like to others */
    uint64_t *outbox ALIGN_LINE; /* `chain`; NULL: there is no outbox, or it is being emptied (outbox.h) */
    uint64_t slow_paths_since_ns, activity_since_ns; /* since when these are what they are */
    struct superblock *active[CLASS_COUNT];
    struct class_lists class[CLASS_COUNT];
    uint32_t pass_slow_paths; /* in a pass: its slow paths at the last pass of the clock, */
    bool is_idle;             /* and what that pass made of them */
    uint32_t surplus_slices;  /* of the surplus of all classes; those lent are counted, too */
    _Atomic uint32_t retaken_slices; /* with pages, that refills took of free spans; each pass halves it (relist.c) */
    uint64_t chain[OUTBOX_CHAINS] ALIGN_LINE;
};
_Static_assert(sizeof(struct heap) <= 4096 + OUTBOX_CHAINS * sizeof(uint64_t), "a page, and the chains");
_Static_assert(offsetof(struct heap, outbox) == HEAP_OUTBOX, "shared with assembly");
_Static_assert(offsetof(struct heap, active) == HEAP_ACTIVE, "shared with assembly");

/* Stand-ins that have nothing: reading through them sends every caller to the slow path. */
extern struct superblock empty_superblock;
extern struct heap empty_heap;

/* Their active slots are never used. */
#define GLOBAL_HEAPS 8u
extern struct heap global_heap[GLOBAL_HEAPS];

static inline struct heap *global_heap_of(unsigned c)
{
    return &global_heap[c % GLOBAL_HEAPS];
}

static inline bool heap_is_global(const struct heap *h)
{
    return h >= global_heap && h < global_heap + GLOBAL_HEAPS;
}

/* All local heaps ever created, in order; never freed. */
extern struct heap *heap_list[HEAPS_MAX];
extern _Atomic unsigned heap_total;
extern struct lock binding_lock;

/* The heap of the slot the caller runs on, created if need be; NULL without memory.  No lock needed. */
struct heap *heap_here(void);

/* *probe == expected, then *target = value, against whatever else may change superblock `s` of heap `h`. */
enum rcs_result heap_commit(struct heap *h, const struct superblock *s, const uint64_t *probe, uint64_t expected,
                            uint64_t *target, uint64_t value);

/* ---- lists ---- */
void heap_list_insert(struct heap *h, struct superblock *s, enum group group);
void heap_list_remove(struct heap *h, struct superblock *s);
/* The first superblock of class `c` whose group is neither full nor empty, fullest first; else an empty one; else
 * one of the nearly full that has room; NULL if there is none. */
struct superblock *heap_find_fullest(struct heap *h, unsigned c);
/* The fullest that is an eighth free, or more, and will do; a few of each group are looked at.  NULL if there is
 * none. */
struct superblock *heap_find_fullest_of(struct heap *h, unsigned c, bool (*will_do)(const struct superblock *));
/* Where memory is short: one of the nearly full that has room, or holes, which count as room from now on.  A bounded
 * number is looked at, each time the next ones; NULL if none of these will do. */
struct superblock *heap_find_further(struct heap *h, unsigned c);
/* Before memory is refused: any with room or holes, however many have to be looked at, even the active one. */
struct superblock *heap_find_any(struct heap *h, unsigned c);

/* Unlinks a superblock of `h`, active or listed, and takes its owner away; after an rcs_fence() it is detached. */
void heap_take_offline(struct heap *h, struct superblock *s);
/* The same for a superblock of the heap the caller runs on, by sections: it is detached at once, without a fence.  If
 * the result is not rcs_done the superblock is still h's. */
enum rcs_result heap_give_up(struct heap *h, struct superblock *s);
/* The fence was refused: a superblock taken offline from `h`, not yet touched, goes back.  No lock needed. */
void heap_undo_offline(struct heap *h, struct superblock *s);
/* Detaches `s` (which may be NULL) of `h` by a fence.  NULL if that is refused. */
struct superblock *heap_detach(struct heap *h, struct superblock *s);

/* ---- the pending stack ---- */
/* Has `h` relist `s` later.  No lock needed; async-signal-safe. */
void heap_push_pending(struct heap *h, struct superblock *s);
/* Adds a block to its superblock's remote list; the owner, if there is one, relists the superblock if that was armed.
 * No lock needed; async-signal-safe. */
enum remote_pushed heap_push_remote(struct superblock *s, void *block);
/* The same for a chain (remote_push_chain). */
enum remote_pushed heap_push_remote_chain(struct superblock *s, uint64_t chain);
/* Relists what is pending, no more at a time than lets the lock go soon. */
#define FLUSH_MAX 64
void heap_flush_pending(struct heap *h);
/* The next superblock that was pending, on no stack any more; NULL if there is none. */
struct superblock *heap_pop_pending(struct heap *h);
static inline bool heap_has_pending(const struct heap *h)
{
    return atomic_load_explicit(&h->x_pending, memory_order_relaxed) != 0 ||
           __atomic_load_n(&h->flushing, __ATOMIC_RELAXED) != 0;
}

/* ---- relisting: a superblock is put where it belongs (relist.c) ---- */
/* `s` is detached or owned by `h`, and not active.  Collects its remote frees, lists it by its group, arms the
 * notifications that will move it on, and passes it on if it is surplus.  A detached `s` becomes h's. */
void heap_relist(struct heap *h, struct superblock *s);
/* True if `s`, from the pending stack of `h` or a notification, is h's to relist.  If another heap owns it by now, that
 * one is told. */
bool heap_has_to_relist(struct heap *h, struct superblock *s);
/* Relists it if so. */
void heap_relist_pending(struct heap *h, struct superblock *s);
/* A refill of `h`, whose lock is held, took so many slices of free spans that have pages: it may keep as much surplus,
 * up to a bound. */
void heap_note_retaken(struct heap *h, unsigned slices);
/* Half of that counts from now on.  Any thread. */
void heap_halve_retaken(struct heap *h);
/* Detaches a listed superblock of `h` with this list; false if it was not to be had. */
bool heap_detach_listed(struct heap *h, struct superblock *s, uint64_t list);
/* Makes a listed superblock of `h` that is empty a free span.  False if it is not empty any more, or was not to be
 * had. */
bool heap_release(struct heap *h, struct superblock *s);
/* Makes spans of a detached superblock without live blocks, whose list, if it is whole, has them all. */
void heap_give_back(struct superblock *s, uint64_t list);
/* Moves the blocks of x_remote to the local list. */
enum rcs_result heap_collect(struct heap *h, struct superblock *s);

/* ---- refill (refill.c) ---- */
enum refill { refill_ready, refill_moved, refill_aborted, refill_exhausted };
/* Gives class `c` an active superblock with a free block.  refill_moved: the caller's cid may have changed, start over.
 * refill_aborted: something aborts every section, and starting over would not help.  refill_exhausted: there is no
 * memory. */
enum refill heap_refill(struct heap *h, unsigned c);
/* A block of the active superblock that nobody has had: all zero, most of its pages not there yet.  NULL if the next
 * one would not be.  For blocks that take longer to clear than to be looked for. */
void *heap_take_fresh(struct heap *h, unsigned c);
/* Takes one block without any section, however often sections abort: for debuggers that step through them.  It comes
 * from the same superblock every time, so a program stepped from end to end does not grow by one a malloc. */
void *heap_take_detached(struct heap *h, unsigned c);
/* A block of the global heap, whose lock it takes: for threads that run no sections (rcs_is_suspended).  It needs no
 * fence.  NULL without memory; or if all that was free of a superblock is damaged. */
void *heap_take_unbound(unsigned c);
/* Before memory is refused: a block of any heap's superblock, which becomes h's, or of a fresh one however short.  `h`
 * may be NULL, where there is no memory for a heap: then it is the global heap's.  No lock held. */
void *heap_take_wherever(struct heap *h, unsigned c);

/* ---- regaining (regain.c) ---- */
/* Much of what is in use is superblocks of `h` that are mostly free. */
bool heap_is_mostly_surplus(const struct heap *h);
/* Before `slices` slices are taken that were never used, for class `wanted`: makes superblocks of other classes of `h`,
 * the caller's, that hold no block free spans, and lends parts of others if the heap is mostly surplus, until they have
 * as many slices or that takes long.  False if there were none. */
bool heap_regain(struct heap *h, unsigned wanted, size_t slices);
/* In a child: whoever lent is not there. */
void heap_regain_recover(void);

/* ---- global heap (relist.c); these take its lock ---- */
void global_adopt(struct superblock *s);
/* Heap `h` has no superblock of the class with room: others may pass on what they have too many of.  No lock needed. */
void global_want(const struct heap *h, unsigned c);
/* The one of class `c` that heap_find_fullest, heap_find_further or heap_find_any finds there, detached; NULL if there
 * is none. */
struct superblock *global_take(unsigned c, struct superblock *(*find)(struct heap *, unsigned));
/* The same by who has the lock. */
struct superblock *global_detach(unsigned c, struct superblock *(*find)(struct heap *, unsigned));

/* ---- other cids' heaps (takeover.c) ---- */
/* Each call looks at a few of the other heaps, the next ones each time: so what is free in a heap that nobody runs on
 * is found in time, and no refill pays for how many heaps there are. */
/* Detaches a superblock of another heap, one at rest: it has class `c` and room.  NULL if there is none. */
struct superblock *heap_take_from_resting(struct heap *h, unsigned c);
/* Before new memory is used: takes what is pending on heaps at rest, remote frees that wait for a slow path which may
 * never come, and relists it in `h`.  True if there was any. */
bool heap_take_pending_of_resting(struct heap *h);
/* For when there is no memory: detaches a superblock of class `c` with room, whichever heap has it, active or not;
 * or NULL.  No lock held: their locks are waited for. */
struct superblock *heap_take_from_any(unsigned c);
/* The caller's slow path finds itself on heap `h`: if it has left another heap that nobody else uses, that one is
 * brought along.  Returns the caller's heap.  No lock held. */
struct heap *heap_rebind_after_migration(struct heap *h);
/* The caller, on heap `h`, freed `blocks` of `other`.  True on every 64th remote free and after a migration: then the
 * caller calls heap_reclaim_if_inactive, which exchanges the two heaps, or merges `other` into `h`, if nobody runs on
 * `other`.  No lock held. */
bool heap_wants_reclaim(struct heap *h, const struct heap *other, unsigned blocks);
void heap_reclaim_if_inactive(struct heap *h, struct heap *other);
/* In a pass of the clock: sets `is_idle` of the heaps from `first` to before `end` that had no slow path since the last
 * such pass; returns how many.  And of none of those before `end`. */
unsigned heap_note_idle(unsigned first, unsigned end);
void heap_forget_idle(unsigned end);
extern _Atomic uint64_t takeover_count;
#ifdef SUTLER_TEST_CIDS
/* The caller's next slow path counts as its first. */
void heap_forget_last(void);
#endif

/* ---- a child made without fork handlers (recover.c) ---- */
/* Makes everything of this layer whole again whose lock was held when the child was made, and frees the locks. */
void heap_recover(void);
/* True if any lock of this layer is held. */
bool heap_is_locked(void);

/* ---- damage (damage.c) ---- */
/* "sutler: FUNCTION(): corrupted free list WHERE 0x... (reason)"; then aborts unless SUTLER_ON_ERROR=report. */
void damage_report(const char *function, const char *where, const void *start, const char *reason);
/* If there is `damage`, a reason and not NULL: takes the detached superblock out of use for good, reports it, and
 * returns true. */
bool superblock_quarantine_if(const char *damage, struct superblock *s, const char *function);

#endif
