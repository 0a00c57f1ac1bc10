/* SPDX-License-Identifier: MIT */
#include "heap/huge.h"

#include <errno.h>
#include <stdatomic.h>

#include "heap/superblock.h"
#include "heap/region.h"
#include "options/options.h"
#include "os/os.h"

/* The page's first slice, which has its marks. */
static struct slice *mark_of(const void *address)
{
    return slice_at(slice_of((void *)align_down((uintptr_t)address, HUGE_PAGE_BYTES)));
}

static unsigned flags_of(const struct slice *mark)
{
    return __atomic_load_n(&mark->huge, __ATOMIC_RELAXED);
}

static void set_flags(struct slice *mark, unsigned flags)
{
    __atomic_fetch_or(&mark->huge, (uint8_t)flags, __ATOMIC_RELAXED);
}

static void clear_flags(struct slice *mark, unsigned flags)
{
    __atomic_fetch_and(&mark->huge, (uint8_t)~flags, __ATOMIC_RELAXED);
}

unsigned huge_parts(void *address, size_t bytes, void *part[2])
{
    uintptr_t start = (uintptr_t)address, end = start + bytes;
    uintptr_t first = align_down(start, HUGE_PAGE_BYTES), last = align_down(end - 1, HUGE_PAGE_BYTES);
    bool is_last_whole = end % HUGE_PAGE_BYTES == 0;
    unsigned count = 0;
    if (start != first || (first == last && !is_last_whole))
        part[count++] = address;
    if (last != first && !is_last_whole)
        part[count++] = (void *)(end - os_page_bytes);
    return count;
}

/* Huge pages that were asked for, and not split, lie in mappings of their own, one for each run of them; a process may
 * have 65,530 mappings. */
#define RUNS_MAX 16384
static _Atomic int runs;

/* Outside the region there is no advice of ours. */
static unsigned flags_at(uintptr_t page)
{
    return region_contains((void *)page) ? flags_of(mark_of((void *)page)) : HUGE_SMALL;
}

static bool is_large(uintptr_t page)
{
    return mark_of((void *)page)->is_large;
}

/* The system makes huge pages there, or may do so later. */
static bool is_advised(uintptr_t page)
{
    const unsigned flags = flags_at(page);
    return (flags & (HUGE_SPLIT | HUGE_SMALL)) == 0 && ((flags & HUGE_ASKED) != 0 || os_makes_all_pages_huge());
}

static int advised_beside(uintptr_t first, uintptr_t end)
{
    return is_advised(first - HUGE_PAGE_BYTES) + is_advised(end);
}

static bool has_runs_enough(void)
{
    return atomic_load_explicit(&runs, memory_order_relaxed) >= RUNS_MAX;
}

/* These pages, of which some may be advised, are about to be split, or asked for no more.  False if that would be one
 * mapping too many. */
static bool withdraw_advice(uintptr_t first, uintptr_t end)
{
    if (advised_beside(first, end) == 2 && has_runs_enough())
        return false;
    os_advise_small((void *)first, end - first);
    return true;
}

/* Counts the runs of advised pages as well: one that becomes advised beside none is a run more, and one between two
 * joins them. */
static void change_flags(uintptr_t page, unsigned cleared, unsigned set)
{
    struct slice *mark = mark_of((void *)page);
    const int before = is_advised(page);
    clear_flags(mark, cleared);
    set_flags(mark, set);
    const int more = is_advised(page) - before;
    atomic_fetch_add_explicit(&runs, more * (1 - advised_beside(page, page + HUGE_PAGE_BYTES)), memory_order_relaxed);
}

static void unask(uintptr_t first, uintptr_t end)
{
    if (!withdraw_advice(first, end))
        return;
    for (uintptr_t at = first; at < end; at += HUGE_PAGE_BYTES)
        change_flags(at, HUGE_ASKED, HUGE_SMALL);
}

static bool is_advised_and_large(uintptr_t page)
{
    return is_advised(page) && is_large(page);
}

/* In the arena for large blocks most pages are split once one is.  So they are asked for no more as far around this one
 * as they are advised, in one call and one mapping: but for a limit, so that little is lost where they are not. */
#define AROUND_BYTES (64ul << 20)

static void unask_around(uintptr_t page)
{
    const uintptr_t least = align_down(page, AROUND_BYTES), most = least + AROUND_BYTES;
    uintptr_t first = page, end = page + HUGE_PAGE_BYTES;
    while (first > least && is_advised_and_large(first - HUGE_PAGE_BYTES))
        first -= HUGE_PAGE_BYTES;
    while (end < most && is_advised_and_large(end))
        end += HUGE_PAGE_BYTES;
    unask(first, end);
}

/* The system is not asked for a huge page there any more: khugepaged would make one again of what is left, be it one
 * small page, and bring back all that is purged. */
void huge_split(void *address)
{
    os_split_huge(address);
    if (!region_contains(address))
        return;
    const uintptr_t page = align_down((uintptr_t)address, HUGE_PAGE_BYTES);
    const bool withdraws = option_get(option_huge_pages) == huge_pages_auto && is_advised(page);
    if (is_large(page)) {
        if (withdraws)
            unask_around(page);
        return;
    }
    if (withdraws)
        withdraw_advice(page, page + HUGE_PAGE_BYTES);
    change_flags(page, 0, HUGE_SPLIT);
}

bool huge_ask(uint32_t first)
{
    const uintptr_t page = (uintptr_t)slice_address(first);
    ASSERT(page % HUGE_PAGE_BYTES == 0);
    const unsigned flags = flags_at(page);
    if ((flags & (HUGE_SPLIT | HUGE_ASKED)) != 0)
        return (flags & HUGE_SPLIT) == 0;
    if (advised_beside(page, page + HUGE_PAGE_BYTES) == 0 && has_runs_enough())
        return false;
    change_flags(page, HUGE_SMALL, HUGE_ASKED);
    os_advise_huge((void *)page, HUGE_PAGE_BYTES);
    return true;
}

bool huge_is_asked_for(const void *address, size_t bytes)
{
    for (uintptr_t at = align_down((uintptr_t)address, HUGE_PAGE_BYTES); at < (uintptr_t)address + bytes;
         at += HUGE_PAGE_BYTES)
        if ((flags_at(at) & HUGE_ASKED) != 0)
            return true;
    return false;
}

static bool are_all_asked(uintptr_t first, uintptr_t end)
{
    while (first < end && (flags_at(first) & (HUGE_ASKED | HUGE_SPLIT | HUGE_SMALL)) == HUGE_ASKED)
        first += HUGE_PAGE_BYTES;
    return first == end;
}

void huge_ask_run(void *address, size_t bytes)
{
    const uintptr_t first = (uintptr_t)address, end = first + bytes;
    ASSERT(first % HUGE_PAGE_BYTES == 0 && bytes % HUGE_PAGE_BYTES == 0);
    if (are_all_asked(first, end) || (region_contains(address) && advised_beside(first, end) == 0 && has_runs_enough()))
        return;
    for (uintptr_t at = first; at < end && region_contains((void *)at); at += HUGE_PAGE_BYTES)
        change_flags(at, HUGE_SPLIT | HUGE_SMALL, HUGE_ASKED);
    os_advise_huge(address, bytes);
}

void huge_unask_run(void *address, size_t bytes)
{
    ASSERT((uintptr_t)address % HUGE_PAGE_BYTES == 0 && bytes % HUGE_PAGE_BYTES == 0);
    if (!region_contains(address))
        os_advise_small(address, bytes);
    else if (huge_is_asked_for(address, bytes))
        unask((uintptr_t)address, (uintptr_t)address + bytes);
}

static bool is_asked_and_dense(uintptr_t page)
{
    return (flags_at(page) & HUGE_ASKED) != 0 && !is_large(page);
}

/* Of the dense arena: a thread that touches these pages next, and has not asked for a huge one, is not to wait until
 * one is cleared. */
static void unask_all(uintptr_t first, uintptr_t end)
{
    for (uintptr_t at = first, stop; at < end; at = stop + HUGE_PAGE_BYTES) {
        for (stop = at; stop < end && is_asked_and_dense(stop);)
            stop += HUGE_PAGE_BYTES;
        if (stop > at)
            unask(at, stop);
    }
}

void huge_note_purged(const void *address, size_t bytes)
{
    const uintptr_t first = align_up((uintptr_t)address, HUGE_PAGE_BYTES),
                    end = align_down((uintptr_t)address + bytes, HUGE_PAGE_BYTES);
    if (option_get(option_huge_pages) == huge_pages_auto)
        unask_all(first, end);
    for (uintptr_t at = first; at < end; at += HUGE_PAGE_BYTES)
        if (region_contains((void *)at))
            change_flags(at, HUGE_SPLIT | HUGE_REFUSED | HUGE_FULL_MAX * HUGE_FULL, 0);
}

/* How many bytes probably lie on wholly free pages. */
static size_t purgeable_bytes(const struct superblock *s)
{
    size_t free_blocks = superblock_free_blocks(s);
    bool is_sparse = (s->carved - free_blocks) * 8 <= s->carved;
    bool goes = s->block_bytes >= os_page_bytes || is_sparse;
    size_t not_carved = s->blocks - s->carved; /* by an earlier purge, or never touched */
    return ((goes ? free_blocks : 0) + not_carved) * s->block_bytes;
}

static size_t purgeable_bytes_in(uint32_t slice)
{
    const struct slice *s = slice_head(slice_at(slice));
    switch (s->kind) {
    case slice_superblock:
        return purgeable_bytes((const struct superblock *)s) / s->slices;
    case slice_free:
    case slice_free_end:
    case slice_unknown: /* inside a free span of the dense arena; or fresh: the program is about to take it */
        return slice_has_pages(s) ? SLICE_BYTES : 0;
    default:
        return 0;
    }
}

/* In the dense arena, where a huge page was asked for. */
static bool is_in_huge(const struct slice *mark)
{
    bool is_asked = (flags_of(mark) & HUGE_ASKED) != 0 || option_get(option_huge_pages) == huge_pages_on;
    return is_asked && !mark->is_large;
}

bool huge_is_advised(uint32_t slice)
{
    const uintptr_t page = align_down((uintptr_t)slice_address(slice), HUGE_PAGE_BYTES);
    return is_advised(page) || option_get(option_huge_pages) == huge_pages_on;
}

bool huge_was_split(uint32_t slice)
{
    const struct slice *mark = mark_of(slice_address(slice));
    return is_in_huge(mark) && (flags_of(mark) & HUGE_SPLIT) != 0;
}

static bool is_worth_splitting(const struct slice *mark)
{
    if (!is_in_huge(mark) || (flags_of(mark) & HUGE_SPLIT) != 0)
        return true;
    uint32_t first = slice_number(mark);
    size_t purgeable = 0;
    for (uint32_t at = first; at < first + HUGE_PAGE_SLICES && region_contains(slice_address(at)); at++)
        purgeable += purgeable_bytes_in(at);
    return purgeable * 2 >= HUGE_PAGE_BYTES;
}

bool huge_is_worth_splitting(uint32_t first, size_t slices)
{
    for (uint32_t at = first; at < first + slices; at = (uint32_t)align_up(at + 1, HUGE_PAGE_SLICES))
        if (!is_worth_splitting(mark_of(slice_address(at))))
            return false;
    return true;
}

size_t huge_count_there(const void *address, size_t bytes)
{
    unsigned char there[HUGE_PAGE_BYTES / OS_PAGE_BYTES_MIN];
    size_t count = 0;
    ASSERT(bytes <= HUGE_PAGE_BYTES);
    if (!os_find_resident((void *)address, bytes, there))
        return SIZE_MAX;
    for (size_t i = 0; i < bytes / os_page_bytes; i++)
        count += there[i];
    return count;
}

bool huge_is_full(const void *page)
{
    return huge_count_there(page, HUGE_PAGE_BYTES) == HUGE_PAGE_BYTES / os_page_bytes;
}

/* ---- made of small pages ---- */

bool huge_may_collapse(uint32_t first)
{
    const unsigned flags = flags_of(slice_at(first));
    return (flags & HUGE_REFUSED) == 0 && (flags & (HUGE_ASKED | HUGE_SPLIT)) != HUGE_ASKED;
}

/* A part of a superblock's bytes that no block uses.  Where free blocks go back by the page (purge.c), they count eight
 * times: the page would be broken for them. */
static size_t unused_in_slice(const struct superblock *s)
{
    size_t blocks = s->blocks - s->carved + superblock_free_blocks(s);
    size_t times = s->block_bytes * 2 >= os_page_bytes ? 8 : 1;
    return times * blocks * s->block_bytes / max_size(1, superblock_slices(s));
}

bool huge_is_in_use(uint32_t first)
{
    size_t unused = 0;
    for (uint32_t at = first; at < first + HUGE_PAGE_SLICES; at++) {
        if (!region_contains(slice_address(at)))
            return false;
        const struct slice *head = slice_head(slice_at(at));
        if (slice_kind(head) != slice_superblock)
            return false;
        unused += unused_in_slice((const struct superblock *)head);
    }
    return unused * 4 <= HUGE_PAGE_BYTES;
}

bool huge_note_look(uint32_t first, bool is_full)
{
    struct slice *mark = slice_at(first);
    const unsigned flags = flags_of(mark), looks = flags / HUGE_FULL % (HUGE_FULL_MAX + 1);
    if (!is_full && looks > 0)
        clear_flags(mark, HUGE_FULL_MAX * HUGE_FULL);
    else if (is_full && looks < HUGE_FULL_MAX)
        __atomic_fetch_add(&mark->huge, (uint8_t)HUGE_FULL, __ATOMIC_RELAXED);
    return is_full && looks >= ((flags & HUGE_SPLIT) != 0 ? HUGE_FULL_MAX : 1);
}

/* Why it cannot be, 0 if it is.  It was not asked for, or is split no more. */
static int make_huge(uint32_t first, long pagemap)
{
    char *page = slice_address(first);
    if (!os_owns_pages(pagemap, page, HUGE_PAGE_BYTES))
        return EAGAIN;
    return huge_ask(first) ? os_collapse(page, HUGE_PAGE_BYTES) : ENOMEM;
}

enum huge_collapsed huge_collapse(uint32_t first, long pagemap)
{
    const uintptr_t page = (uintptr_t)slice_address(first);
    const unsigned flags = flags_at(page), was_split = flags & HUGE_SPLIT;
    change_flags(page, (was_split != 0 ? HUGE_ASKED | HUGE_SPLIT : 0) | HUGE_FULL_MAX * HUGE_FULL, 0);
    const int error = make_huge(first, pagemap);
    if (error == 0)
        return huge_is_made;
    unask_all(page, page + HUGE_PAGE_BYTES);
    const bool has_none = error == ENOMEM || error == EBUSY, is_over = error != EAGAIN || was_split != 0;
    const unsigned found = has_none ? 0 : is_over ? HUGE_REFUSED : HUGE_SPLIT;
    change_flags(page, 0, found | (was_split != 0 ? flags & (HUGE_ASKED | HUGE_SPLIT) : 0));
    return has_none ? huge_has_none : huge_cannot;
}
