/* SPDX-License-Identifier: MIT
 *
 * The reference map of live memory: one bit for every 16 bytes of address space, set while a block covers them.
 *
 * Handing one byte to two owners is the worst thing an allocator can do, and patterns only see it once somebody writes.
 * The map sees it at the malloc that returns: claiming a bit that is already set is an overlap.  It lives in one
 * unbacked mapping (a page of it describes 512 KiB of heap), so it needs no allocator and works from any thread; bits
 * change by atomic operations because neighbouring blocks of different threads share words.
 */
#ifndef TESTS_SHADOW_H
#define TESTS_SHADOW_H

#include "check.h"
#include <sys/mman.h>

#define SHADOW_ADDRESS_BITS 47
#define SHADOW_GRANULE      16

static uint64_t *shadow_words;

static inline void shadow_create(void)
{
    size_t bytes = (size_t)1 << (SHADOW_ADDRESS_BITS - 4 - 3);
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK_MSG(map != MAP_FAILED, "no room for the reference map (errno %d)", errno);
    madvise(map, bytes, MADV_NOHUGEPAGE);
    shadow_words = map;
}

/* Flips every bit of [block, block + size); all must have been `expected` before. */
static inline void shadow_flip(const void *block, size_t size, bool expected, const char *what)
{
    uintptr_t address = (uintptr_t)block;
    CHECK_MSG(address % SHADOW_GRANULE == 0, "%s: block %p is not aligned to 16", what, block);
    CHECK_MSG((address + size) >> SHADOW_ADDRESS_BITS == 0, "%s: block %p out of the address space", what, block);
    size_t bit = address / SHADOW_GRANULE;
    size_t end = (address + size + SHADOW_GRANULE - 1) / SHADOW_GRANULE;
    if (end == bit)
        end++; /* a block of no bytes still has an address of its own */
    while (bit < end) {
        size_t offset = bit % 64;
        size_t count = 64 - offset < end - bit ? 64 - offset : end - bit;
        uint64_t mask = (count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << count) - 1) << offset;
        uint64_t before = expected ? __atomic_fetch_and(&shadow_words[bit / 64], ~mask, __ATOMIC_RELAXED)
                                   : __atomic_fetch_or(&shadow_words[bit / 64], mask, __ATOMIC_RELAXED);
        CHECK_MSG((before & mask) == (expected ? mask : 0), "%s: block %p of %zu bytes overlaps a live block near %p",
                  what, block, size, (void *)(bit * SHADOW_GRANULE));
        bit += count;
    }
}

/* Call right after the allocator returned the block, before anybody else can learn of it. */
static inline void shadow_claim(const void *block, size_t size)
{
    shadow_flip(block, size, false, "claim");
}

/* Call right before the block goes back. */
static inline void shadow_release(const void *block, size_t size)
{
    shadow_flip(block, size, true, "release");
}

#endif
