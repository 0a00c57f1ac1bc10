/* SPDX-License-Identifier: MIT
 *
 * Large blocks at multiples of 2 and 8 MiB, replaced again and again: each finds room where one was freed, and does not
 * take as much more as its alignment each time.
 */
#include "support/family.h"
#include "support/proc.h"
#include "support/rng.h"

#define TURNS 4000

static void replaced(size_t alignment, size_t size, size_t count)
{
    static void *block[256];
    struct rng rng = {.state = 1};
    malloc_trim(0);
    const size_t start = proc_resident_bytes();
    for (size_t turn = 0; turn < TURNS; turn++) {
        const size_t i = turn < count ? turn : rng_below(&rng, count);
        free(block[i]);
        CHECK((block[i] = aligned_alloc(alignment, size)) != NULL && (uintptr_t)block[i] % alignment == 0);
        for (size_t at = 0; at < size; at += 4096)
            ((char *)block[i])[at] = 1;
    }
    const size_t live = count * size, resident = proc_resident_bytes() - start;
    test_say("%zu blocks of %zu KiB at %zu MiB: %zu MiB for %zu live\n", count, size / KIB, alignment / MIB,
             resident / MIB, live / MIB);
    CHECK_MSG(resident <= live * 7 / 4, "%zu MiB are resident for %zu live", resident / MIB, live / MIB);
    for (size_t i = 0; i < count; i++) {
        free(block[i]);
        block[i] = NULL;
    }
}

int main(void)
{
    test_begin(120);
    replaced(2 * MIB, 3 * MIB / 2, 100);
    replaced(8 * MIB, 6 * MIB, 40);
    return 0;
}
