/* SPDX-License-Identifier: MIT
 *
 * One fence for a batch of superblocks, whoever's they are: the heaps' superblocks lie among each other, each is a
 * candidate, and all are purged at once.
 */
#include "scale/heaps.h"
#include <malloc.h>

enum { BYTES = 512, BLOCKS = 64 * 1024 / BYTES, SUPERBLOCKS = 4000 };

int main(int argc, char **argv)
{
    const unsigned fences_most = 130;
    scale_begin(120);
    unsigned heaps = (unsigned)test_option(argc, argv, "--heaps", 64);
    void **block = books((size_t)SUPERBLOCKS * BLOCKS * sizeof *block);
    for (size_t i = 0; i < SUPERBLOCKS; i++) {
        sutler_test_bind_cid((unsigned)(i % heaps));
        for (size_t j = 0; j < BLOCKS; j++) {
            CHECK((block[i * BLOCKS + j] = malloc(BYTES)) != NULL);
            memset(block[i * BLOCKS + j], (int)i, BYTES);
        }
    }
    for (size_t i = 0; i < SUPERBLOCKS; i++) {
        sutler_test_bind_cid((unsigned)(i % heaps));
        for (size_t j = 0; j < BLOCKS; j++)
            if (j % 16 != 0)
                free(block[i * BLOCKS + j]);
    }
    sutler_test_bind_cid(0);
    size_t resident = proc_resident_bytes();
    struct tally before = sutler_test_tally();
    uint64_t start_ns = now_ns();
    malloc_trim(0);
    uint64_t took_ns = now_ns() - start_ns;
    struct tally took = tally_since(before);
    size_t now = proc_resident_bytes(), back = resident > now ? resident - now : 0;
    test_say("%u heaps: %llu fences, %llu locks, %zu of %zu MiB given back, %llu us\n", heaps,
             (unsigned long long)took.fences, (unsigned long long)took.locks, back / MIB, resident / MIB,
             (unsigned long long)took_ns / 1000);
    CHECK(back > resident / 3);
    CHECK_MSG(took.fences <= fences_most, "%llu fences", (unsigned long long)took.fences);
    for (size_t i = 0; i < SUPERBLOCKS; i++) {
        sutler_test_bind_cid((unsigned)(i % heaps));
        for (size_t j = 0; j < BLOCKS; j += 16) {
            const unsigned char *p = block[i * BLOCKS + j];
            CHECK(p[0] == i % 256 && p[BYTES - 1] == i % 256);
            free(block[i * BLOCKS + j]);
        }
    }
    return 0;
}
