/* SPDX-License-Identifier: MIT
 *
 * The quarantine of blocks of superblocks: for each cid and class a ring of places.  A freed block takes the place of
 * one that was put there earlier, which is released.  The ring is gone through in steps of one or two places, by a hash
 * of the block and a secret: so a block stays for at least half as many frees of its class as there are places (less by
 * one for each section that was interrupted), and in which order blocks are released cannot be told.
 *
 * A ring holds QUARANTINE_BYTES of blocks, of larger classes one or two blocks: what is in quarantine is bounded, and
 * small enough to stay in the processor's cache.
 *
 * The blocks' addresses could as well go to the manager, which would keep a longer queue; that costs more than the
 * queue itself (docs/decisions/0024-checks-where-the-line-is.md).
 *
 * A place is exchanged by a section of the cid (quarantine_x86_64.S); to empty the rings of other cids they are taken
 * away, and a fence sent.  Where there are no sections, or none for this, a place is exchanged by an atomic
 * instruction.  A signal handler or a fork finds each block in one place or on its way; in the child of a fork, what
 * was on its way is lost.
 */
#include "hardened/quarantine.h"

#include <stdatomic.h>

#include "hardened/hardened.h"
#include "hardened/sweep.h"
#include "os/os.h"

#define QUARANTINE_BYTES 2048u
#define PLACES_MAX       128u
#define PLACES_TOTAL     1024u
#define ATTEMPTS         8u /* sections are interrupted: often at a ring's first block, whose page is not there yet */

struct ring {
    uint32_t at, mask; /* the place that was last; racy without sections, where it only says which is next */
    void *_Atomic *places;
};
_Static_assert(sizeof(struct ring) == 1 << RING_SHIFT, "shared with assembly");
_Static_assert(offsetof(struct ring, at) == RING_AT && offsetof(struct ring, mask) == RING_MASK &&
                   offsetof(struct ring, places) == RING_PLACES,
               "shared with assembly");

struct rings {
    struct ring ring[CLASS_COUNT];
    void *_Atomic place[PLACES_TOTAL];
};

/* Of each slot: what was made for it; and what sections see, NULL while it is being emptied. */
static struct rings *_Atomic made_for_slot[SLOT_MAX + 1];
struct rings *_Atomic rings_of_slot[SLOT_MAX + 1] __attribute__((visibility("hidden")));

static unsigned places_of(unsigned c)
{
    unsigned wanted = QUARANTINE_BYTES / size_class[c].bytes;
    if (wanted < 2)
        return size_class[c].bytes <= 16384 ? 2 : 1;
    return (unsigned)min_size(1u << top_bit(wanted), PLACES_MAX);
}

static struct rings *make(void)
{
    struct rings *r = os_map(align_up(sizeof(struct rings), os_page_bytes));
    unsigned first = 0;
    for (unsigned c = 0; r != NULL && c < CLASS_COUNT; c++) {
        unsigned places = places_of(c);
        r->ring[c] = (struct ring){.mask = places - 1, .places = &r->place[first]};
        first += places;
    }
    CHECK(first <= PLACES_TOTAL);
    return r;
}

/* Whoever empties all rings, or opens new ones: what two threads empty at once, one finds empty, and it may be open
 * again before the other is done with it. */
static struct lock emptying = LOCK_FREE(rank_tried);

/* The slot's first block.  Not while rings are emptied, which these would not be closed for. */
static COLD void start(unsigned slot)
{
    if (!lock_try(&emptying))
        return;
    struct rings *r = atomic_load(&made_for_slot[slot]);
    if (r == NULL && (r = make()) != NULL) {
        atomic_store(&made_for_slot[slot], r);
        atomic_store(&rings_of_slot[slot], r);
    }
    lock_release(&emptying);
}

/* Mixed twice: blocks lie at equal distances, and there are keys by which one product hardly changes from one to the
 * next. */
static uint32_t quarantine_step(const void *p, uint32_t at)
{
    uint64_t mixed = ((uintptr_t)p ^ at) * marks.order_key;
    mixed = (mixed ^ mixed >> 32) * marks.order_key;
    return 1 + (uint32_t)(mixed >> 63);
}

static void *exchange(unsigned slot, unsigned c, void *p)
{
    struct rings *r = atomic_load_explicit(&rings_of_slot[slot], memory_order_acquire);
    if (r == NULL)
        return p;
    struct ring *ring = &r->ring[c];
    ring->at += quarantine_step(p, ring->at);
    return atomic_exchange_explicit(&ring->places[ring->at & ring->mask], p, memory_order_acq_rel);
}

void *quarantine_exchange(unsigned c, void *p)
{
    if (rcs_is_suspended())
        return p;
    const bool by_section = QUARANTINE_HAS_SECTION && sync_mode == sync_rcs;
    const unsigned slot = sync_mode == sync_rcs ? sync_slot() : sync_slot_last;
    if (unlikely(atomic_load_explicit(&rings_of_slot[slot], memory_order_relaxed) == NULL))
        start(slot);
    if (!by_section)
        return exchange(slot, c, p);
    void *leaves = p;
    for (unsigned i = 0; i < ATTEMPTS && leaves == p; i++)
        leaves = quarantine_swap(p, c);
    return leaves;
}

/* ---- emptying ---- */

static bool empty(struct rings *r)
{
    bool any = false;
    for (unsigned i = 0; i < PLACES_TOTAL; i++) {
        void *p = r->place[i] != NULL ? atomic_exchange(&r->place[i], NULL) : NULL;
        if (p != NULL)
            harden_release(p);
        any |= p != NULL;
    }
    return any;
}

static void open_rings(void)
{
    for (unsigned slot = 0; slot <= SLOT_MAX; slot++)
        if (atomic_load_explicit(&made_for_slot[slot], memory_order_relaxed) != NULL)
            atomic_store(&rings_of_slot[slot], atomic_load(&made_for_slot[slot]));
}

/* Not a part of its caller, as large_release_all. */
NOINLINE bool quarantine_release_all(void)
{
    bool any = false;
    const bool by_sections = QUARANTINE_HAS_SECTION && sync_mode == sync_rcs;
    if (rcs_is_suspended() || !lock_try(&emptying))
        return false;
    for (unsigned slot = 0; by_sections && slot <= SLOT_MAX; slot++)
        atomic_store_explicit(&rings_of_slot[slot], NULL, memory_order_relaxed);
    if (!by_sections || rcs_fence())
        for (unsigned slot = 0; slot <= SLOT_MAX; slot++) {
            struct rings *r = atomic_load(&made_for_slot[slot]);
            any |= r != NULL && empty(r);
        }
    open_rings();
    lock_release(&emptying);
    return any;
}

void quarantine_recover(void)
{
    lock_reset(&emptying);
    open_rings();
    sweep_recover();
}
