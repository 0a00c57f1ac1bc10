/* SPDX-License-Identifier: MIT
 *
 * A freed block is zero, wherever the program wrote to it; and clearing it takes no memory for pages that the program
 * never wrote to.
 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/proc.h"
#include "support/rng.h"

#define PAGE 4096u
#define BLOCKS 64u

static char *block[BLOCKS];

static void expect_little_is_taken(size_t bytes)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        memset(block[i] = malloc(bytes), 1, 100);
    const size_t before = proc_resident_bytes();
    for (unsigned i = 0; i < BLOCKS; i++)
        free(block[i]);
    const size_t after = proc_resident_bytes(), most = BLOCKS * bytes / 4;
    CHECK_MSG(after < before + most, "%u blocks of %zu bytes: to free them took %zu", BLOCKS, bytes, after - before);
}

/* One byte in some of the pages, anywhere. */
static void expect_zeros(size_t bytes, struct rng *rng)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        block[i] = malloc(bytes);
        for (size_t at = rng_below(rng, PAGE); at < bytes; at += rng_below(rng, 3 * PAGE))
            block[i][at] = 1;
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        const volatile char *freed = block[i];
        free(block[i]);
        for (size_t at = 16; at < bytes; at++) /* what a free block needs itself is before that */
            CHECK_MSG(freed[at] == 0, "byte %zu of %zu", at, bytes);
    }
}

int main(void)
{
    struct rng rng = {0x5a17ed};
    static const size_t sizes[] = {8000, 16000, 30000, 60000, 120000, 262144, 1000000};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expect_zeros(sizes[i], &rng);
        if (sizes[i] >= 30000)
            expect_little_is_taken(sizes[i]);
    }
    return 0;
}
