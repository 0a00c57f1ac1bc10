/* SPDX-License-Identifier: MIT */
#include "heap/signal_safe.h"

#include <errno.h>
#include <stdatomic.h>

#include "heap/heap.h"
#include "os/hooks.h"
#include "os/os.h"
#ifdef SUTLER_HARDENED
#include "marks/state.h"
#endif

/* Whole pages of states, in the hardened library, whatever the system's pages are. */
#define CHUNK_PAGES 64u
#define CHUNKS_MAX  (REGION_BELOW_BYTES / (CHUNK_PAGES * OS_PAGE_BYTES_MIN))

/* A cell is known by its offset in units of the smallest cell; the first chunk is left out, and 0 is none. */
#define ORDER_MIN 6u
#define ORDER_MAX 31u
#define CELL_NONE 0u
#define CELL_MAX  ((uint32_t)(REGION_BELOW_BYTES >> ORDER_MIN) - 1)
/* The pages of freed cells from this order on are given back. */
#define ORDER_PURGED 18u

/* Before each block.  The mark is made of the block's address, so that what programs write is not taken for one. */
struct header {
    uint32_t units; /* of BLOCK_ALIGNMENT bytes, in the block */
    uint32_t cell : 32 - ORDER_MIN;
    uint32_t order : ORDER_MIN; /* the cell is of 1 << order bytes */
    _Atomic uintptr_t mark;
};
#define HEADER_BYTES sizeof(struct header)
_Static_assert(HEADER_BYTES == BLOCK_ALIGNMENT, "blocks are aligned");
_Static_assert(REGION_BELOW_BYTES == 1ul << 32, "cells have numbers of 32 - ORDER_MIN bits");
#define MARK_LIVE  0x6c1fe5a92d37b481ul
#define MARK_FREED 0x93d05b7ee84a167ful
#define MARK_LINK  0x2e5fb80c61d7934aul

static char *space; /* REGION_BELOW_BYTES of addresses */
static size_t chunk_bytes;
static _Atomic uint64_t is_mapped[CHUNKS_MAX / 64]; /* a bit for each chunk */
static _Atomic size_t chunks;                       /* how many are mapped */
static _Atomic uint32_t next_chunk = 1; /* where to try to map; those before are mapped, or somebody else's */
static _Atomic uint64_t carved;         /* offset: from here to the end of its chunk cells may be carved */
/* Freed cells of each order: {how many were taken << 32 | the one on top}.  The first word of a freed cell says
 * which is below it. */
static _Atomic uint64_t freed[ORDER_MAX + 1];

/* ---- chunks ---- */

static int map(size_t offset, size_t bytes)
{
    int error = os_map_at(space + offset, bytes);
#ifdef SUTLER_HARDENED
    if (error == 0 && (error = os_map_at(state_of(space + offset), bytes >> STATE_SHIFT)) != 0)
        os_unmap(space + offset, bytes);
#endif
    return error;
}

static void note_mapped(uint32_t first, uint32_t count)
{
    for (uint32_t chunk = first; chunk < first + count; chunk++)
        atomic_fetch_or(&is_mapped[chunk / 64], 1ull << chunk % 64);
    atomic_fetch_add(&chunks, count);
    for (uint32_t next = atomic_load(&next_chunk); next < first + count;)
        if (atomic_compare_exchange_weak(&next_chunk, &next, first + count))
            break;
}

/* Maps that many chunks in a row, which are the caller's; 0 without memory. */
static size_t map_chunks(uint32_t count)
{
    for (uint32_t first = atomic_load(&next_chunk); (first + count) * chunk_bytes <= REGION_BELOW_BYTES;) {
        const int error = map(first * chunk_bytes, count * chunk_bytes);
        if (error == 0) {
            note_mapped(first, count);
            return first * chunk_bytes;
        }
        if (error != EEXIST)
            return 0;
        if (atomic_compare_exchange_strong(&next_chunk, &first, first + 1))
            first++; /* of another handler's, which will say how many it has; or of somebody else's mapping */
    }
    return 0;
}

void signal_safe_start(void)
{
    space = region_below();
    chunk_bytes = CHUNK_PAGES * os_page_bytes;
    const size_t chunk = map_chunks(1);
    if (chunk != 0)
        atomic_store(&carved, chunk + (1u << ORDER_MIN)); /* at a border there would be no chunk */
}

bool signal_safe_contains(const void *p)
{
    const size_t offset = (uintptr_t)p - (uintptr_t)space;
    if (offset >= REGION_BELOW_BYTES || space == NULL)
        return false;
    const size_t chunk = offset / chunk_bytes;
    return (atomic_load(&is_mapped[chunk / 64]) >> chunk % 64 & 1) != 0;
}

size_t signal_safe_mapped_bytes(void)
{
    return atomic_load(&chunks) * chunk_bytes;
}

/* ---- cells ---- */

static char *cell_address(uint32_t cell)
{
    return space + ((size_t)cell << ORDER_MIN);
}

static _Atomic uintptr_t *link_of(uint32_t cell)
{
    return (_Atomic uintptr_t *)cell_address(cell);
}

static uintptr_t link_to(uint32_t from, uint32_t to)
{
    return (uintptr_t)link_of(from) ^ MARK_LINK ^ to;
}

static void push(uint32_t cell, unsigned order)
{
    uint64_t top = atomic_load(&freed[order]);
    do
        atomic_store_explicit(link_of(cell), link_to(cell, (uint32_t)top), memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&freed[order], &top, (top & ~(uint64_t)UINT32_MAX) | cell));
}

/* What is read of a cell that another thread has just taken is whatever the program put there, and the exchange fails:
 * the count has changed.  If it succeeds though what was read is no link, the program wrote to a block it had freed;
 * the others of that stack are lost. */
static uint32_t pop(unsigned order)
{
    uint64_t top = atomic_load(&freed[order]), under;
    uint32_t cell;
    do {
        cell = (uint32_t)top;
        if (cell == CELL_NONE)
            return CELL_NONE;
        under = atomic_load_explicit(link_of(cell), memory_order_relaxed) ^ link_to(cell, CELL_NONE);
    } while (!atomic_compare_exchange_weak(&freed[order], &top,
                                           ((top >> 32) + 1) << 32 | (under <= CELL_MAX ? under : CELL_NONE)));
    if (unlikely(under > CELL_MAX))
        damage_report("malloc", "of signal handlers' blocks at", cell_address(cell), "a freed block was written to");
    return cell;
}

/* What is left of a chunk when the next one is begun. */
static void push_rest(size_t at, size_t end)
{
    for (unsigned order; at < end; at += (size_t)1 << order) {
        order = top_bit(end - at);
        push((uint32_t)(at >> ORDER_MIN), order);
    }
}

/* Cells as large as a chunk, or larger. */
static uint32_t chunks_take(unsigned order)
{
    const uint32_t cell = pop(order), count = (uint32_t)(((size_t)1 << order) / chunk_bytes);
    return cell != CELL_NONE ? cell : (uint32_t)(map_chunks(count) >> ORDER_MIN);
}

static uint32_t carve(unsigned order)
{
    const size_t bytes = (size_t)1 << order;
    uint64_t at = atomic_load(&carved);
    for (;;) {
        const size_t end = align_up(at, chunk_bytes);
        if (at + bytes <= end) {
            if (atomic_compare_exchange_weak(&carved, &at, at + bytes))
                return (uint32_t)(at >> ORDER_MIN);
            continue;
        }
        const uint32_t chunk = chunks_take(top_bit(chunk_bytes));
        if (chunk == CELL_NONE)
            return CELL_NONE;
        if (atomic_compare_exchange_strong(&carved, &at, ((size_t)chunk << ORDER_MIN) + bytes)) {
            push_rest(at, end);
            return chunk;
        }
        push(chunk, top_bit(chunk_bytes)); /* another thread was faster */
    }
}

static uint32_t cell_take(unsigned order)
{
    if (((size_t)1 << order) >= chunk_bytes)
        return chunks_take(order);
    const uint32_t cell = pop(order);
    return cell != CELL_NONE ? cell : carve(order);
}

/* ---- blocks ---- */

static struct header *header_of(char *block)
{
    return (struct header *)(block - HEADER_BYTES);
}

void *signal_safe_take(size_t size, size_t alignment)
{
    const size_t bytes = align_up(max_size(size, 1), BLOCK_ALIGNMENT);
    alignment = max_size(alignment, BLOCK_ALIGNMENT);
    if (size > (size_t)1 << ORDER_MAX || alignment > chunk_bytes)
        return NULL;
    const unsigned order = (unsigned)max_size(top_bit(bytes + alignment - 1) + 1, ORDER_MIN);
    const uint32_t cell = order <= ORDER_MAX ? cell_take(order) : CELL_NONE;
    if (cell == CELL_NONE)
        return NULL;
    char *block = (char *)align_up((uintptr_t)cell_address(cell) + HEADER_BYTES, alignment);
    struct header *header = header_of(block);
    header->units = (uint32_t)(bytes / BLOCK_ALIGNMENT);
    header->cell = cell;
    header->order = order;
    atomic_store_explicit(&header->mark, (uintptr_t)block ^ MARK_LIVE, memory_order_relaxed);
    return block;
}

bool signal_safe_give(void *p)
{
    const struct header header = *header_of(p);
    uintptr_t live = (uintptr_t)p ^ MARK_LIVE;
    if (!atomic_compare_exchange_strong(&header_of(p)->mark, &live, (uintptr_t)p ^ MARK_FREED))
        return false;
    if (header.order >= ORDER_PURGED && !os_is_hooked()) { /* handlers may have interrupted a hook */
        char *page = (char *)align_up((uintptr_t)p, os_page_bytes);
        os_purge(page, (size_t)(cell_address(header.cell) + ((size_t)1 << header.order) - page));
    }
    push(header.cell, header.order);
    return true;
}

static uintptr_t mark_of(const void *p)
{
    const bool may_be = (uintptr_t)p % BLOCK_ALIGNMENT == 0 && signal_safe_contains(header_of((char *)p));
    return may_be ? atomic_load_explicit(&header_of((char *)p)->mark, memory_order_relaxed) ^ (uintptr_t)p : 0;
}

/* Not so if what lies before the block was written to. */
static bool fits_its_cell(const char *p, size_t bytes)
{
    const struct header *header = header_of((char *)p);
    const char *cell = cell_address(header->cell);
    return header->order <= ORDER_MAX && p > cell && p + bytes <= cell + ((size_t)1 << header->order);
}

size_t signal_safe_bytes(const void *p)
{
    if (mark_of(p) != MARK_LIVE)
        return 0;
    const size_t bytes = (size_t)header_of((char *)p)->units * BLOCK_ALIGNMENT;
    return fits_its_cell(p, bytes) ? bytes : 0;
}

bool signal_safe_was_freed(const void *p)
{
    return mark_of(p) == MARK_FREED;
}
