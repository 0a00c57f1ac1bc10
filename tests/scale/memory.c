/* SPDX-License-Identifier: MIT
 *
 * What a heap costs that holds hardly anything: one block of each class.  Resident memory of many such heaps, at once
 * and some seconds after all was freed, with a manager; their address space; and that they get it under a limit.
 */
#include "scale/heaps.h"
#include <sys/resource.h>

enum { CLASSES_MOST = 88 };

/* The sizes of all classes: steps of 16 bytes, then eight per doubling. */
static unsigned class_sizes(size_t *size, size_t most)
{
    unsigned count = 0;
    for (size_t bytes = 16, step = 16; bytes <= most; bytes += step) {
        size[count++] = bytes;
        if (bytes >= 128 && (bytes & (bytes - 1)) == 0)
            step = bytes / 8;
    }
    return count;
}

static void *(*block)[CLASSES_MOST];

static void take_one_of_each(unsigned heaps, size_t most)
{
    size_t size[CLASSES_MOST];
    unsigned count = class_sizes(size, most);
    for (unsigned i = 0; i < heaps; i++) {
        sutler_test_bind_cid(i);
        for (unsigned c = 0; c < count; c++) {
            CHECK_MSG((block[i][c] = malloc(size[c])) != NULL, "heap %u got no block of %zu bytes", i, size[c]);
            memset(block[i][c], 1, size[c] < 8 * KIB ? size[c] : 8 * KIB);
        }
    }
}

static void give_all(unsigned heaps)
{
    for (unsigned i = 0; i < heaps; i++) {
        sutler_test_bind_cid(i);
        for (unsigned c = 0; c < CLASSES_MOST; c++) {
            free(block[i][c]);
            block[i][c] = NULL;
        }
    }
}

static size_t mapped_bytes(void)
{
    struct sutler_stats stats;
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    return stats.mapped_bytes;
}

/* jemalloc with as many threads keeps 86 MiB. */
static void resident_is_small(unsigned heaps)
{
    const size_t most_at_once = 90 * MIB * heaps / 256, most_later = 40 * MIB * heaps / 256,
                 base = proc_resident_bytes();
    take_one_of_each(heaps, 8 * KIB);
    size_t at_once = proc_resident_bytes() - base, later = at_once;
    give_all(heaps);
    for (int i = 0; i < 50 && later > most_later; i++) {
        sleep_us(100000);
        later = proc_resident_bytes() > base ? proc_resident_bytes() - base : 0;
    }
    test_say("%u heaps: %zu KiB resident, %zu after all was freed\n", heaps, at_once / KIB, later / KIB);
    CHECK_MSG(at_once <= most_at_once, "%zu KiB resident", at_once / KIB);
    CHECK_MSG(later <= most_later, "%zu KiB resident some seconds later", later / KIB);
}

static void address_space_is_bounded(unsigned heaps)
{
    const size_t most = (size_t)4096 * MIB / 256 * heaps;
    size_t before = mapped_bytes();
    take_one_of_each(heaps, 128 * KIB);
    size_t took = mapped_bytes() - before;
    test_say("%u heaps of all classes: %zu MiB of address space\n", heaps, took / MIB);
    CHECK_MSG(took <= most, "%zu MiB of address space", took / MIB);
    give_all(heaps);
}

static void a_limit_is_enough(void)
{
    const unsigned heaps = 64;
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = (rlim_t)4000000 * KIB;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    take_one_of_each(heaps, 128 * KIB);
    give_all(heaps);
}

int main(int argc, char **argv)
{
    scale_begin(120);
    unsigned heaps = (unsigned)test_option(argc, argv, "--heaps", 256);
    block = books((heaps > 64 ? heaps : 64) * sizeof *block);
    resident_is_small(heaps);
    address_space_is_bounded(heaps);
    a_limit_is_enough();
    return 0;
}
