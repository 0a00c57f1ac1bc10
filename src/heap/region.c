/* SPDX-License-Identifier: MIT */
#include "heap/region.h"

#include <errno.h>
#include <stdatomic.h>

#include "heap/slice.h"
#include "options/options.h"
#include "os/os.h"
#ifdef SUTLER_HARDENED
#include "marks/state.h"
#endif

/* One slice of descriptors describes 32 MiB of region.  The array lies below the region and grows by such units. */
#define DESCRIPTOR_UNIT SLICE_BYTES
#define UNIT_SLICES     (DESCRIPTOR_UNIT >> DESCRIPTOR_SHIFT)

/* The first slices are never opened.  Their descriptors begin where pages do, as their blocks would, and a processor
 * that has just written to a block takes a load of the freelist, the same offset in its page, for one of the block: for
 * the first superblock of a program a malloc and a free took 17 ns for 7. */
#define FIRST_SLICE 16ul
#define STEP_SLICES_MIN 16ul   /* 1 MiB */
#define STEP_SLICES_MAX 1024ul /* 64 MiB */
#define HOLE_SLICES     1024ul /* how far to skip when something is in the way */
/* With huge_pages=auto, huge pages are asked for once so much is open, and as much resident: for a small process they
 * cost more memory than they save time, and a process with a few blocks of many sizes has opened much more than it
 * touches. */
#define HUGE_START_BYTES (8ul << 20)

static size_t huge_from = SLICE_END;
static size_t limit; /* no slice from here on is opened */
static size_t top = FIRST_SLICE;         /* slices of region up to the highest opened one */
static size_t described;                 /* slices that have a descriptor mapped */
static size_t opened;                    /* slices opened, without holes */
static size_t holes_end;                 /* no slice from here on is marked as one of a hole */
static _Atomic size_t top_bytes;         /* top, for lookups without a lock */

/* Gaps: slices that are never used, because another mapping lies where their descriptors would.  There is hardly ever
 * one.  A gap is entered while it is above `top`, and does not change once it is below. */
#define GAPS_MAX 8u
static struct {
    size_t first, end;
} gap[GAPS_MAX];
static _Atomic unsigned gap_count;

size_t region_opened_bytes(void)
{
    return opened << SLICE_SHIFT;
}

uint32_t region_end(void)
{
    return (uint32_t)top;
}

void *region_below(void)
{
    return hot.descriptors - REGION_BELOW_BYTES;
}

/* The end of the gap that holds the slice, or the slice itself. */
static COLD size_t past_gap(size_t slice)
{
    for (unsigned i = 0; i < gap_count; i++)
        if (slice >= gap[i].first && slice < gap[i].end)
            return gap[i].end;
    return slice;
}

bool region_contains(const void *p)
{
    size_t offset = (uintptr_t)p - hot.region_base;
    return offset < atomic_load_explicit(&top_bytes, memory_order_acquire) &&
           (likely(gap_count == 0) || past_gap(offset >> SLICE_SHIFT) == offset >> SLICE_SHIFT);
}

uint32_t region_slice_from(uint32_t slice)
{
    size_t from = likely(gap_count == 0) ? slice : past_gap(slice);
    return from < atomic_load_explicit(&top_bytes, memory_order_acquire) >> SLICE_SHIFT ? (uint32_t)from : SLICE_END;
}

/* The fast path knows no gaps: frees above the first one take the slow path. */
static size_t flat_bytes(void)
{
    return (gap_count == 0 ? top : min_size(top, gap[0].first)) << SLICE_SHIFT;
}

static int describe_unit(size_t slice)
{
    char *descriptors = hot.descriptors + (slice << DESCRIPTOR_SHIFT);
    int error = os_map_at(descriptors, DESCRIPTOR_UNIT);
#ifdef SUTLER_HARDENED /* the states of its slices' blocks (marks/state.h) go with a unit of descriptors */
    if (error == 0) {
        error = os_map_at(state_of(slice_address((uint32_t)slice)), (UNIT_SLICES << SLICE_SHIFT) >> STATE_SHIFT);
        if (error != 0)
            os_unmap(descriptors, DESCRIPTOR_UNIT);
    }
#endif
    return error;
}

#ifdef SUTLER_HARDENED
/* The states lie below the descriptors, as far away as there may be descriptors. */
static void place_states(size_t slices_max)
{
    uintptr_t states = (uintptr_t)hot.descriptors - (slices_max << DESCRIPTOR_SHIFT) -
                       (slices_max << (SLICE_SHIFT - STATE_SHIFT));
    marks_place_states(states - (hot.region_base >> STATE_SHIFT));
}
#endif

/* Makes sure the first `slices` slices have descriptors. */
static int describe(size_t slices)
{
    while (described < slices) {
        int error = describe_unit(described);
        if (error != 0)
            return error;
        described += UNIT_SLICES;
    }
    return 0;
}

/* A page that is read first is the system's page of zeros, and exchanging that at the first write interrupts every
 * processor the program runs on.  So the pages are written to. */
static void touch_descriptors(size_t first, size_t count)
{
    uintptr_t start = (uintptr_t)hot.descriptors + (first << DESCRIPTOR_SHIFT),
              end = start + (count << DESCRIPTOR_SHIFT);
    for (uintptr_t page = align_down(start, os_page_bytes); page < end; page += os_page_bytes)
        os_touch((void *)page);
}

/* Skips the slices of the next unit of descriptors, which cannot be mapped.  False if there are too many gaps. */
static bool leave_gap(void)
{
    bool longer = gap_count > 0 && gap[gap_count - 1].end == described;
    unsigned last = longer ? gap_count - 1 : gap_count;
    if (last == GAPS_MAX)
        return false;
    if (!longer)
        gap[last].first = described;
    described += UNIT_SLICES;
    gap[last].end = described;
    atomic_store_explicit(&gap_count, last + 1, memory_order_release);
    return true;
}

/* Slices below the top that were not opened say so: a child that looks for what threads of its parent had in their
 * hands must not take them.  It may find some above its top that such a thread was about to skip. */
static void mark_holes(size_t first, size_t at, size_t end)
{
    for (size_t slice = at; slice < end && slice < holes_end; slice++)
        slice_become(slice_at((uint32_t)slice), slice_unknown);
    holes_end = at > first ? max_size(holes_end, at) : holes_end;
    for (size_t slice = past_gap(first); slice < at; slice = past_gap(slice + 1))
        slice_become(slice_at((uint32_t)slice), slice_hole);
}

#define APART (OUTBOX_CHAINS * SLICE_BYTES) /* by the address of a block sections know which chain its slice's is */
_Static_assert(APART % HUGE_PAGE_BYTES == 0, "huge pages lie where slices' numbers say");

/* Where the region may begin: at one of `positions` addresses, multiples of `apart`; how many slices it may have.  The
 * first kind of place that the system allows is taken.
 *
 * Of the 47 bits of x86-64 others have fixed parts.  ThreadSanitizer has shadow everywhere but at 0 to 0x80, 0x5500 to
 * 0x5680 and 0x7e80 to 0x8000 (times 2^32), and ends a program that has a mapping there; MemorySanitizer everywhere but
 * in 0x5100 to 0x6000 and from 0x7000; the race detector of Go maps over what it finds in 0x2000 to 0x4000, and the
 * collector of a Java machine has its heap below.  From 0x5555 the kernel places programs, the brk after them.  So the
 * region begins below programs, as high as leaves them out of a heap of less than 65 GiB: a larger one goes around.
 * The hardened library's needs more places, and its states 512 GiB below; ThreadSanitizer leaves no room for that. */
static const struct place {
    uintptr_t first;
    size_t apart;
    uint32_t positions; /* a power of two */
    uint32_t slices_max;
} place[] = {
#if defined(__x86_64__) && !defined(SUTLER_HARDENED)
    {0x550500000000, APART, 1u << 16, REGION_SLICES_MAX},
#elif defined(__x86_64__)
    {0x530000000000, APART, 1u << 19, REGION_SLICES_MAX},
#endif
    {0x280000000000, 1ul << 30, 1u << 15, REGION_SLICES_MAX}, /* 40 to 72 TiB */
    {0x0a0000000000, 1ul << 28, 1u << 15, REGION_SLICES_MAX >> 2}, /* lower where the address space is smaller */
    {0x028000000000, 1ul << 26, 1u << 15, REGION_SLICES_MAX >> 4},
    {0x00a000000000, 1ul << 24, 1u << 15, REGION_SLICES_MAX >> 6},
    {0x002800000000, 1ul << 22, 1u << 15, REGION_SLICES_MAX >> 8},
};

static int start_at(uintptr_t base, size_t slices_max)
{
    hot.region_base = base;
    hot.descriptors = (char *)(base - (slices_max << DESCRIPTOR_SHIFT));
    limit = slices_max;
#ifdef SUTLER_HARDENED
    place_states(slices_max);
#endif
    int error = describe(1);
    if (error == 0) {
        mark_holes(0, FIRST_SLICE, FIRST_SLICE);
        hot.flat_bytes = flat_bytes();
    }
    return error;
}

bool region_start(void)
{
    enum { ATTEMPTS = 4 };
    for (unsigned i = 0; i < ARRAY_LEN(place); i++)
        for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
            uint32_t pick = os_is_randomized() ? os_random() : attempt * (place[i].positions / ATTEMPTS);
            pick &= place[i].positions - 1;
            int error = start_at(place[i].first + pick * place[i].apart, place[i].slices_max);
            if (error == 0)
                return true;
            if (error == ENOMEM)
                break; /* perhaps for the address, not for memory: another kind of place */
        }
    return false;
}

/* Slices to open when `slices` are wanted: an eighth of what is open, within bounds, up to the border of a huge page,
 * so that the next step begins with a whole one; a small process gets by with half of one. */
static size_t step_for(size_t slices)
{
    size_t step = max_size(STEP_SLICES_MIN, min_size(top / 8, STEP_SLICES_MAX));
    size_t end = top + max_size(slices, step);
    bool is_small = end < HUGE_PAGE_SLICES && option_get(option_huge_pages) != huge_pages_on;
    return align_up(end, is_small ? STEP_SLICES_MIN : HUGE_PAGE_SLICES) - top;
}

bool region_fits_huge_pages(void)
{
    return os_huge_page_bytes() == HUGE_PAGE_BYTES;
}

/* ru_maxrss survives exec, so a large parent's child counts as large.  Where the system may not be asked, four times as
 * much address space has to do. */
static bool has_grown_large(void)
{
    const size_t opened_bytes = region_opened_bytes();
    if (opened_bytes < HUGE_START_BYTES)
        return false;
    size_t resident = os_resident_peak_bytes();
    return resident == 0 ? opened_bytes >= 4 * HUGE_START_BYTES : resident >= HUGE_START_BYTES;
}

static bool is_time_for_huge_pages(bool is_dense)
{
    unsigned choice = option_get(option_huge_pages);
    if (choice != huge_pages_auto)
        return choice == huge_pages_on;
    return is_dense && region_fits_huge_pages() && (huge_from != SLICE_END || has_grown_large());
}

/* Unless huge_pages=on: no huge page until one is asked for (huge.h), whatever the system's default. */
static void advise(size_t first, size_t slices)
{
    void *address = slice_address((uint32_t)first);
    const size_t bytes = slices << SLICE_SHIFT;
    huge_from = min_size(huge_from, first);
    if (option_get(option_huge_pages) == huge_pages_on) {
        os_advise_huge(address, bytes);
        return;
    }
    os_advise_small(address, bytes);
    for (size_t page = align_up(first, HUGE_PAGE_SLICES); page < first + slices; page += HUGE_PAGE_SLICES)
        slice_at((uint32_t)page)->huge = HUGE_SMALL;
}

uint32_t region_huge_from(void)
{
    return (uint32_t)huge_from;
}

bool region_open(size_t slices, bool is_dense, uint32_t *first, size_t *count)
{
    const bool is_huge = is_time_for_huge_pages(is_dense);
    size_t want = step_for(slices), at = top;
    for (;;) {
        int error = at + want > limit ? ENOMEM : describe(at + want);
        if (error == EEXIST) { /* in the way of the descriptors */
            if (!leave_gap())
                return false;
            at = max_size(at, described);
            continue;
        }
        if (error == 0)
            error = os_map_at((char *)hot.region_base + (at << SLICE_SHIFT), want << SLICE_SHIFT);
        if (error == 0)
            break;
        if (error == EEXIST)
            at += HOLE_SLICES;
        else if (want > slices)
            want = slices; /* a limit is near: open just what is needed */
        else
            return false;
    }
    /* A fork may be waiting for the mapping to be made: what it does not find entered its child takes for somebody
     * else's. */
    mark_holes(top, at, at + want);
    top = at + want;
    atomic_store_explicit(&top_bytes, top << SLICE_SHIFT, memory_order_release);
    opened += want;
    __atomic_store_n(&hot.flat_bytes, flat_bytes(), __ATOMIC_RELEASE);
    size_t served = __atomic_load_n(&hot.region_bytes, __ATOMIC_RELAXED);
    if (served != 0) /* and is not closed meanwhile, by a vfork */
        __atomic_compare_exchange_n(&hot.region_bytes, &served, hot.flat_bytes, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    if (is_huge)
        advise(at, want);
    touch_descriptors(at, want);
    /* Describe one unit ahead: near a limit there may be room for slices, but not for their descriptors too. */
    describe(min_size(top + UNIT_SLICES, limit));
    *first = (uint32_t)at;
    *count = want;
    return true;
}
