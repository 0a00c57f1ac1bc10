/* SPDX-License-Identifier: MIT
 *
 * Mappings of their own for the largest blocks.
 */
#include "heap/mapping.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "heap/filling.h"
#include "heap/huge_policy.h"
#include "heap/large.h"
#include "heap/mapping_cache.h"
#include "heap/mapping_table.h"
#include "heap/region.h"
#include "os/lock.h"
#include "os/os.h"

/* A mapping that is made shorter and longer so often, within so long each time, will be again. */
#define SWINGS   2u
#define SWING_NS 1000000000ull

/* Fresh memory at a multiple of `alignment`: maps more and cuts off both ends. */
static uintptr_t map_aligned(size_t bytes, size_t alignment)
{
    size_t slack = alignment > os_page_bytes ? alignment - os_page_bytes : 0;
    if (bytes + slack < bytes)
        return 0;
    char *mapped = os_map(bytes + slack);
    if (mapped == NULL || slack == 0)
        return (uintptr_t)mapped;
    uintptr_t start = align_up((uintptr_t)mapped, alignment);
    size_t head = start - (uintptr_t)mapped, tail = slack - head;
    if (head > 0)
        os_unmap(mapped, head);
    if (tail > 0)
        os_unmap((char *)start + bytes, tail);
    return start;
}

/* ---- blocks that grow in small steps ---- */

/* Once one that grew was freed, so many of the next stay spans: what is freed of those is there for the next ones, but
 * a mapping's pages have to be had anew. */
#define GROWN_STAY 256u
static _Atomic unsigned grown_stay;

bool mapping_suits_grown(void)
{
    const unsigned stay = atomic_load_explicit(&grown_stay, memory_order_relaxed);
    if (stay > 0)
        atomic_store_explicit(&grown_stay, stay - 1, memory_order_relaxed);
    return stay == 0;
}

static struct mapping map_block(size_t bytes, size_t alignment)
{
    if (huge_policy_asks(bytes)) {
        uintptr_t start = map_aligned(bytes, max_size(alignment, HUGE_PAGE_BYTES));
        if (start != 0) {
            huge_policy_note_asked(bytes);
            os_advise_huge((void *)start, bytes);
            return (struct mapping){start, bytes, .is_fresh = true, .was_asked = true};
        }
    }
    return (struct mapping){map_aligned(bytes, alignment), bytes, .is_fresh = true};
}

static void *enter(struct mapping mapping)
{
    if (mapping.address == 0)
        return NULL;
    lock_take(&mapping_lock);
    bool reserved = mapping_table_reserve();
    if (reserved)
        mapping_table_insert(mapping);
    lock_release(&mapping_lock);
    if (!reserved) {
        os_unmap((void *)mapping.address, mapping.bytes);
        return NULL;
    }
    return (void *)mapping.address;
}

static size_t bytes_for(size_t size)
{
    return align_up(max_size(size, 1), os_page_bytes);
}

/* One that gets longer gets room: in small steps the system is asked once for many, and huge pages are moved whole.
 * Not more than realloc leaves a block when it is asked for less (core/realloc.c); and none in the hardened library,
 * where the guard lies right behind what was asked for. */
static size_t with_room(size_t wanted)
{
#ifdef SUTLER_HARDENED
    return wanted;
#else
    return align_up(wanted, HUGE_PAGE_BYTES);
#endif
}

/* A mapping of *have bytes that nobody else knows of gets `bytes`, and *have is what it has then.  Else it is gone, and
 * 0 is returned. */
static uintptr_t lengthen(uintptr_t address, size_t *have, size_t bytes)
{
    const size_t roomy = with_room(bytes), before = *have;
    void *longer = os_remap((void *)address, before, *have = roomy, true);
    if (longer == NULL)
        longer = os_remap((void *)address, before, *have = bytes, true);
    if (longer == NULL)
        os_unmap((void *)address, before);
    return (uintptr_t)longer;
}

void *mapping_take_kept(size_t size, size_t alignment)
{
    const size_t bytes = bytes_for(size);
    size_t have = bytes;
    lock_take(&mapping_lock);
    uintptr_t address = bytes < size ? 0 : mapping_cache_take(bytes, alignment, &have);
    lock_release(&mapping_lock);
    if (address != 0 && have < bytes)
        address = lengthen(address, &have, bytes);
    return enter((struct mapping){.address = address, .bytes = have});
}

void *mapping_take(size_t size, size_t alignment, bool *zero)
{
    void *kept = mapping_take_kept(size, alignment);
    *zero = kept == NULL;
    size_t bytes = bytes_for(size);
    if (kept != NULL || bytes < size)
        return kept;
    const struct mapping fresh = map_block(bytes, alignment);
    void *block = enter(fresh);
    if (block != NULL)
        huge_policy_note(block, size, fresh.was_asked);
    return block;
}

size_t mapping_bytes(const void *p, bool may_wait)
{
    if (may_wait)
        lock_take(&mapping_lock);
    else if (!lock_try(&mapping_lock))
        return BYTES_UNKNOWN;
    const struct mapping *m = mapping_table_find((uintptr_t)p);
    size_t bytes = m == NULL ? 0 : m->bytes;
    lock_release(&mapping_lock);
    return bytes;
}

static void look(const struct mapping *m, bool was_asked)
{
    if (m->is_fresh)
        huge_policy_look((void *)m->address, m->bytes, HUGE_PAGE_BYTES, was_asked);
}

bool mapping_give(void *p)
{
    struct mapping given = {0};
    lock_take(&mapping_lock);
    struct mapping *m = mapping_table_find((uintptr_t)p);
    if (m != NULL) {
        given = *m;
        mapping_table_remove(m);
    }
    lock_release(&mapping_lock);
    if (given.bytes == 0)
        return false;
    filling_forget(p);
    if (given.grew)
        atomic_store_explicit(&grown_stay, GROWN_STAY, memory_order_relaxed);
    look(&given, given.was_asked);
    /* What is taken so short is mostly a span. */
    const bool wanted = !given.grew || given.bytes >= MAPPING_BYTES_MIN;
    bool cached = mapping_cache_prepare(given.address, given.bytes, wanted);
    if (cached) {
        lock_take(&mapping_lock);
        cached = mapping_cache_give(given.address, given.bytes, wanted);
        lock_release(&mapping_lock);
    }
    if (!cached)
        os_unmap(p, given.bytes);
    return true;
}

/* What is known of the block at `p`; all zero if there is none. */
static struct mapping find(const void *p)
{
    lock_take(&mapping_lock);
    const struct mapping *m = mapping_table_find((uintptr_t)p);
    const struct mapping found = m == NULL ? (struct mapping){0} : *m;
    lock_release(&mapping_lock);
    return found;
}

bool mapping_swings(const void *p)
{
    const struct mapping m = find(p);
    return m.swings == SWINGS && os_now_ns() - m.swung_ns <= SWING_NS;
}

#ifdef SUTLER_HARDENED
bool mapping_look(const void *p, struct mapping *found)
{
    *found = find(p);
    return found->bytes != 0;
}

bool mapping_note(const void *p, size_t slack, uint8_t family, bool is_quarantined)
{
    lock_take(&mapping_lock);
    struct mapping *m = mapping_table_find((uintptr_t)p);
    bool changed = m != NULL && !(m->is_quarantined && is_quarantined);
    if (changed)
        m->slack = slack, m->family = family, m->is_quarantined = is_quarantined;
    lock_release(&mapping_lock);
    return changed;
}
#endif

/* One made longer soon after it was made shorter. */
static void note_swing(struct mapping *m, uint64_t now_ns)
{
    if (m->cut_ns == 0 || now_ns - m->cut_ns > SWING_NS)
        return;
    m->swings = now_ns - m->swung_ns > SWING_NS ? 1 : SWINGS;
    m->swung_ns = now_ns;
}

static void note_resized(struct mapping *m, size_t wanted)
{
    const uint64_t now_ns = os_now_ns();
    if (wanted < m->bytes) {
        m->cut_ns = now_ns;
    } else if (wanted > m->bytes) {
        m->grew = true;
        note_swing(m, now_ns);
    }
}

/* The lock is held during the move: otherwise another thread could get the old address before the table knows. */
static void *resize(void *p, size_t wanted)
{
    lock_take(&mapping_lock);
    bool may_move = mapping_table_reserve(); /* a move leaves a tombstone behind and takes a new entry */
    struct mapping *m = mapping_table_find((uintptr_t)p);
    void *moved = m == NULL ? NULL : m->bytes == wanted ? p : os_remap(p, m->bytes, wanted, may_move);
    if (moved != NULL)
        note_resized(m, wanted);
    if (moved == p) {
        mapping_table_set_bytes(m, wanted);
    } else if (moved != NULL) {
        struct mapping elsewhere = *m;
        elsewhere.address = (uintptr_t)moved;
        elsewhere.bytes = wanted;
        mapping_table_remove(m);
        mapping_table_insert(elsewhere);
    }
    lock_release(&mapping_lock);
    return moved;
}

/* A block about to grow that is full will be filled again: the system is asked for huge pages. */
static void ask_if_full(const struct mapping *now, size_t wanted)
{
    look(now, false); /* what has to grow was filled, whatever it lies on */
    if (!huge_policy_asks(now->bytes))
        return;
    huge_policy_note_asked(wanted - now->bytes);
    os_advise_huge((void *)now->address, now->bytes);
}

/* The system grows what is one mapping to it.  A block is several since huge pages were asked for in a part of it
 * (filling.h): told the same for all of it, it is one again.  False if it cannot be. */
static bool make_one(const struct mapping *now)
{
    return huge_policy_tells(now->bytes) && os_advise_small((void *)now->address, now->bytes);
}

void *mapping_resize(void *p, size_t size)
{
    const size_t wanted = align_up(size, os_page_bytes);
    if (wanted < size)
        return NULL;
    const struct mapping now = find(p);
    if (wanted <= now.bytes)
        return resize(p, wanted);
    ask_if_full(&now, wanted);
    void *moved = resize(p, with_room(wanted));
    if (moved == NULL && with_room(wanted) > wanted)
        moved = resize(p, wanted);
    return moved == NULL && make_one(&now) ? resize(p, wanted) : moved;
}
