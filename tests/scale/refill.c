/* SPDX-License-Identifier: MIT
 *
 * Fresh memory at any number of heaps: one heap grows, and how many locks it takes, heaps it looks at and fences it
 * sends for each superblock must not depend on how many others there are, whatever those have: full superblocks, some
 * with a little room, or superblocks pending.  The bounds are those of two heaps and a constant.
 */
#include "scale/heaps.h"
#include <malloc.h>

enum { BYTES = 64, EACH = 1024, SUPERBLOCKS = 200 };

struct others {
    const char *what;
    unsigned free_every; /* of their blocks so many are freed, by their own threads; 0: none */
    bool is_pushed;      /* and one of each superblock by another's, so that it is pending */
};

static void **block; /* of the others */

static void fill_others(unsigned heaps, const struct others *others)
{
    enum { HELD = 3 * EACH };
    for (unsigned i = 1; i < heaps; i++) {
        void **held = block + (size_t)i * HELD;
        sutler_test_bind_cid(i);
        for (size_t j = 0; j < HELD; j++)
            CHECK((held[j] = malloc(BYTES)) != NULL);
        for (size_t j = 0; others->free_every != 0 && j < HELD; j += others->free_every) {
            free(held[j]);
            held[j] = NULL;
        }
    }
    sutler_test_bind_cid(0);
    for (unsigned i = 1; i < heaps && others->is_pushed; i++)
        for (size_t j = EACH / 2; j < HELD; j += EACH) {
            free(block[(size_t)i * HELD + j]);
            block[(size_t)i * HELD + j] = NULL;
        }
}

static void empty_others(unsigned heaps)
{
    enum { HELD = 3 * EACH };
    for (unsigned i = 1; i < heaps; i++) {
        sutler_test_bind_cid(i);
        for (size_t j = 0; j < HELD; j++)
            free(block[(size_t)i * HELD + j]);
    }
}

/* Heap 0 grows by SUPERBLOCKS superblocks beside so many others; what that took. */
static struct tally grow(unsigned heaps, const struct others *others)
{
    const size_t count = (size_t)SUPERBLOCKS * EACH;
    static void *grown[SUPERBLOCKS * EACH];
    fill_others(heaps, others);
    sutler_test_bind_cid(0);
    for (size_t i = 0; i < EACH; i++)
        free(malloc(BYTES));
    struct tally before = sutler_test_tally();
    uint64_t start_ns = now_ns();
    for (size_t i = 0; i < count; i++)
        CHECK((grown[i] = malloc(BYTES)) != NULL);
    uint64_t took_ns = now_ns() - start_ns;
    struct tally took = tally_since(before);
    test_say("%5u heaps that have %s: a superblock takes %.2f locks, %.2f looks, %.2f reads, %.2f fences, "
             "%.2f flushed,"
             " %llu ns\n", heaps, others->what, (double)took.locks / SUPERBLOCKS, (double)took.looks / SUPERBLOCKS,
             (double)took.reads / SUPERBLOCKS, (double)took.fences / SUPERBLOCKS, (double)took.flushed / SUPERBLOCKS,
             (unsigned long long)(took_ns / SUPERBLOCKS));
    for (size_t i = 0; i < count; i++)
        free(grown[i]);
    empty_others(heaps);
    sutler_test_bind_cid(0);
    malloc_trim(0);
    return took;
}

int main(int argc, char **argv)
{
    static const struct others other[] = {
        {"full superblocks", 0, false},
        {"nearly full ones", 16, false},
        {"superblocks pending", 16, true},
    };
    const unsigned looks_most = 2 * 8, reads_most = 2, locks_most = 24, flushed_most = 64;
    scale_begin(300);
    unsigned heaps = (unsigned)test_option(argc, argv, "--heaps", 64);
    block = books((size_t)heaps * 3 * EACH * sizeof *block);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        grow(2, &other[i]);
        struct tally took = grow(heaps, &other[i]);
        CHECK_MSG(took.looks <= looks_most * SUPERBLOCKS, "%llu heaps looked at", (unsigned long long)took.looks);
        CHECK_MSG(took.reads <= reads_most * SUPERBLOCKS, "%llu heaps' lists read", (unsigned long long)took.reads);
        CHECK_MSG(took.locks <= locks_most * SUPERBLOCKS, "%llu locks", (unsigned long long)took.locks);
        CHECK_MSG(took.flushed <= flushed_most * SUPERBLOCKS, "%llu flushed", (unsigned long long)took.flushed);
    }
    return 0;
}
