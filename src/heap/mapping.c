/* SPDX-License-Identifier: MIT
 *
 * Mappings of their own for the largest blocks.
 */
#include "heap/mapping.h"

#include <stdatomic.h>
#include <string.h>

#include "base/bits.h"
#include "heap/filling.h"
#include "heap/grown.h"
#include "heap/huge_policy.h"
#include "heap/large.h"
#include "heap/mapping_cache.h"
#include "heap/mapping_table.h"
#include "heap/region.h"
#include "os/hooks.h"
#include "os/lock.h"
#include "os/os.h"

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

/* False without memory. */
static bool note_taken(struct mapping mapping)
{
    lock_take(&mapping_lock);
    bool reserved = mapping_table_reserve();
    if (reserved)
        mapping_table_insert(mapping);
    lock_release(&mapping_lock);
    return reserved;
}

static void *enter(struct mapping mapping)
{
    if (mapping.address == 0)
        return NULL;
    if (note_taken(mapping))
        return (void *)mapping.address;
    os_give_back((void *)mapping.address, mapping.bytes);
    return NULL;
}

static size_t bytes_for(size_t size)
{
    return align_up(max_size(size, 1), os_page_bytes);
}

/* As it was when the first one grew. */
static bool may_map_freely(void)
{
    static _Atomic(enum { not_asked, no, yes }) known;
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == not_asked)
        atomic_store_explicit(&known, answer = os_may_map_freely() ? yes : no, memory_order_relaxed);
    return answer == yes;
}

/* One that gets longer gets room: in small steps the system is asked once for many, and huge pages are moved whole.  An
 * eighth at most where address space is limited. */
static size_t with_room(size_t wanted)
{
    const size_t room = align_up(wanted, HUGE_PAGE_BYTES) - wanted;
    return wanted + (may_map_freely() ? room : min_size(room, align_down(wanted / 8, os_page_bytes)));
}

/* A mapping that nobody else knows of gets `bytes`.  False, and nothing has changed, without memory. */
static bool lengthen(struct mapping *m, size_t bytes)
{
    size_t got = with_room(bytes);
    void *longer = os_remap((void *)m->address, m->bytes, got, true);
    if (longer == NULL)
        longer = os_remap((void *)m->address, m->bytes, got = bytes, true);
    if (longer == NULL)
        return false;
    m->address = (uintptr_t)longer;
    m->bytes = got;
    return true;
}

void *mapping_take_kept(size_t size, size_t alignment)
{
    const size_t bytes = bytes_for(size);
    if (bytes < size)
        return NULL;
    lock_take(&mapping_lock);
    struct mapping kept = mapping_cache_take(bytes, alignment);
    lock_release(&mapping_lock);
    if (kept.address != 0 && kept.bytes < bytes && !lengthen(&kept, bytes)) {
        os_give_back((void *)kept.address, kept.bytes);
        return NULL;
    }
    kept.asked = size;
    return enter(kept);
}

bool mapping_is_kept(size_t size)
{
    lock_take(&mapping_lock);
    const bool is_kept = mapping_cache_serves(bytes_for(size), BLOCK_ALIGNMENT);
    lock_release(&mapping_lock);
    return is_kept;
}

/* For a block that has got or is getting `more` bytes, which are to lie on huge pages. */
static void ask_for_more(const struct mapping *m, size_t more)
{
    huge_policy_note_asked(more);
    os_advise_huge((void *)m->address, m->bytes);
}

/* Pages are moved only if there will be room for more: to put them back they would have to be copied. */
static bool is_room_for(size_t bytes)
{
    void *room = os_map(bytes);
    if (room != NULL)
        os_unmap(room, bytes);
    return room != NULL;
}

void *mapping_take_pages(void *from, size_t have, size_t size, bool is_fresh)
{
    struct mapping m = {.bytes = have, .asked = size, .is_fresh = is_fresh, .grew = true};
    const size_t bytes = bytes_for(size);
    ASSERT(have < size);
    if (bytes < size || !is_room_for(bytes) || (m.address = (uintptr_t)os_move_pages(from, have)) == 0)
        return NULL;
    const bool longer = lengthen(&m, bytes);
    m.was_asked = longer && huge_policy_asks(bytes);
    if (m.was_asked)
        ask_for_more(&m, m.bytes - have);
    if (longer && note_taken(m))
        return (void *)m.address;
    memcpy(from, (void *)m.address, have);
    os_give_back((void *)m.address, m.bytes);
    return NULL;
}

static void *take_fresh(size_t size, size_t alignment)
{
    const size_t bytes = bytes_for(size);
    if (bytes < size)
        return NULL;
    struct mapping fresh = map_block(bytes, alignment);
    fresh.asked = size;
    void *block = enter(fresh);
    if (block != NULL)
        huge_policy_note(block, size, fresh.was_asked);
    return block;
}

void *mapping_take(size_t size, size_t alignment, bool *zero)
{
    void *kept = mapping_take_kept(size, alignment);
    *zero = kept == NULL;
    return kept != NULL ? kept : take_fresh(size, alignment);
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

/* Of one that grows in steps the end may not be filled yet. */
static void look(const struct mapping *m, bool was_asked)
{
    if (m->is_fresh)
        huge_policy_look((void *)m->address, m->asked, min_size(HUGE_PAGE_BYTES, m->asked / 8), was_asked);
}

/* In pieces off the end: whoever maps or unmaps something else waits for as long as one takes. */
static void unmap(struct mapping m)
{
    const size_t piece_max = (size_t)8 << 20;
    for (size_t left = m.bytes; left > 0;) {
        const size_t piece = min_size(left, piece_max);
        left -= piece;
        os_give_back((void *)(m.address + left), piece);
    }
}

/* Nobody knows of it any more.  `wanted`: somebody may want one as long. */
static void leave(struct mapping m, bool wanted)
{
    bool cached = mapping_cache_prepare(m.address, m.bytes, wanted);
    if (cached) {
        lock_take(&mapping_lock);
        cached = mapping_cache_give(m, wanted);
        lock_release(&mapping_lock);
    }
    if (!cached)
        unmap(m);
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
#ifdef SUTLER_HARDENED
    if (given.usable != 0) /* freed by a signal handler, which could not look at it */
        os_guard((char *)p + given.usable, given.bytes - given.usable, false);
#endif
    filling_forget(p);
    if (given.grew)
        grown_note_freed();
    look(&given, given.was_asked);
    leave(given, !given.grew || given.bytes >= MAPPING_BYTES_MIN); /* what is taken so short is mostly a span */
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

bool mapping_stays(const void *p, size_t size)
{
    lock_take(&mapping_lock);
    struct mapping *m = mapping_table_find((uintptr_t)p);
    const bool stays = m != NULL && size <= m->bytes && grown_stays(m, size);
    lock_release(&mapping_lock);
    return stays;
}

#ifdef SUTLER_HARDENED
bool mapping_look(const void *p, struct mapping *found)
{
    *found = find(p);
    return found->bytes != 0;
}

bool mapping_note(const void *p, size_t usable, size_t slack, uint8_t family, bool is_quarantined)
{
    lock_take(&mapping_lock);
    struct mapping *m = mapping_table_find((uintptr_t)p);
    bool changed = m != NULL && !(m->is_quarantined && is_quarantined);
    if (changed)
        m->usable = usable, m->slack = slack, m->family = family, m->is_quarantined = is_quarantined;
    lock_release(&mapping_lock);
    return changed;
}
#endif

/* What is cut off is unmapped when the lock is released: the system takes long for it. */
static void *cut(void *p, size_t wanted, size_t asked)
{
    struct mapping rest = {0};
    lock_take(&mapping_lock);
    struct mapping *m = mapping_table_find((uintptr_t)p);
    const bool known = m != NULL && wanted <= m->bytes;
    if (known) {
        grown_note_resized(m, wanted);
        rest = (struct mapping){.address = m->address + wanted, .bytes = m->bytes - wanted};
        mapping_table_set_bytes(m, wanted);
        m->asked = asked;
    }
    lock_release(&mapping_lock);
    unmap(rest);
    return known ? p : NULL;
}

/* By what is kept and begins where the block ends.  NULL if that is not enough; or where address space is limited: it
 * may not be one mapping then, and to grow further it would have to be copied. */
static void *extend(void *p, size_t wanted, size_t asked)
{
    if (!may_map_freely())
        return NULL;
    lock_take(&mapping_lock);
    struct mapping *m = mapping_table_find((uintptr_t)p);
    const bool extended = m != NULL && mapping_cache_take_at(m->address + m->bytes, wanted - m->bytes);
    if (extended) {
        grown_note_resized(m, wanted);
        mapping_table_set_bytes(m, wanted);
        m->asked = asked;
        m->is_several = true;
        m->is_fresh = false;
    }
    lock_release(&mapping_lock);
    return extended ? p : NULL;
}

/* The lock is held during the move: otherwise another thread could get the old address before the table knows. */
static void *lengthen_block(void *p, size_t wanted, size_t asked)
{
    lock_take(&mapping_lock);
    bool may_move = mapping_table_reserve(); /* a move leaves a tombstone behind and takes a new entry */
    struct mapping *m = mapping_table_find((uintptr_t)p);
    void *moved = m == NULL ? NULL : os_remap(p, m->bytes, wanted, may_move);
    if (moved != NULL) {
        grown_note_resized(m, wanted);
        m->asked = asked;
    }
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
    if (huge_policy_asks(now->bytes))
        ask_for_more(now, wanted - now->bytes);
}

/* The system grows what is one mapping to it.  A block is several since huge pages were asked for in a part of it
 * (filling.h): told the same for all of it, it is one again.  False if it cannot be. */
static bool make_one(const struct mapping *now)
{
    return huge_policy_tells(now->bytes) && os_advise_small((void *)now->address, now->bytes);
}

/* One that cannot be lengthened, as kept mappings that were put together.  It is one afterwards.  (In the hardened
 * library whoever asks has to copy: a block goes through quarantine.) */
static void *copy_to_one(void *p, size_t bytes, size_t size)
{
#ifdef SUTLER_HARDENED
    return NULL;
#endif
    void *one = take_fresh(size, BLOCK_ALIGNMENT);
    if (one != NULL) {
        memcpy(one, p, bytes);
        mapping_give(p);
    }
    return one;
}

void *mapping_resize(void *p, size_t size)
{
    const size_t wanted = bytes_for(size);
    if (wanted < size)
        return NULL;
    const struct mapping now = find(p);
    if (now.bytes == 0)
        return NULL; /* it is none */
    if (wanted <= now.bytes)
        return cut(p, wanted, size);
    const size_t roomy = with_room(wanted);
    void *longer = extend(p, roomy, size);
    if (longer != NULL)
        return longer;
    ask_if_full(&now, wanted);
    longer = lengthen_block(p, roomy, size);
    if (longer == NULL && roomy > wanted)
        longer = lengthen_block(p, wanted, size);
    if (longer != NULL)
        return longer;
    const bool is_one = os_is_one_mapping(p, now.bytes);
    if (!is_one && make_one(&now))
        longer = lengthen_block(p, wanted, size);
    /* Not for want of memory: it is several, whoever made it so, or nothing may be moved. */
    return longer == NULL && (!is_one || os_is_hooked()) ? copy_to_one(p, now.bytes, size) : longer;
}
