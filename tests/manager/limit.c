/* SPDX-License-Identifier: MIT
 *
 * A control group with a limit of 256 MiB, driven to its edge.  The same program - blocks of sizes on which no
 * allocator has to round more than another, grown to a level, churned there, shrunk and regrown - runs in such a group
 * under the system's malloc and under the library, at higher and higher levels, and the library's must not be killed
 * for memory at a level at which the system's was not.  The last levels before the limit are left out; without a
 * manager, who sees that memory is short, some more are: there the superblocks that are not full decide.
 *
 * Groups of version 2 and, where the memory controller belongs to version 1, of that one.  The group is made below the
 * test's own, so that it allows no more than that.
 */
#include "support/cgroup.h"
#include "watch.h"

#define LIMIT_MIB 256

/* ---- the program ---- */

static int program(uint64_t seed, size_t mib)
{
    static const size_t sizes[] = {24, 56, 120, 248, 504, 1016};
    static void *block[(size_t)1 << 21];
    static unsigned char kind[(size_t)1 << 21];
    struct rng rng = {seed};
    size_t count = 0, bytes = 0, wanted = mib * MIB - sizeof(void *) * 64;
    /* The tables are memory of the group as well. */
    for (; bytes + count * (1 + sizeof(void *)) < wanted; count++) {
        size_t size = sizes[kind[count] = (unsigned char)rng_below(&rng, 6)];
        CHECK(count < sizeof block / sizeof block[0] && (block[count] = malloc(size)) != NULL);
        memset(block[count], (int)count, size);
        bytes += size + 8;
        if (bytes + 40 * MIB > wanted && count % 256 == 0)
            sleep_us(20); /* slowly towards the edge: time to make much ready */
    }
    /* One for one, of the same size: the level stays, the manager has something to look at. */
    for (size_t i = 0; i < 2 * count; i++) {
        size_t at = rng_below(&rng, count), size = sizes[kind[at]];
        unsigned char *old = block[at];
        CHECK(old[0] == (unsigned char)at);
        free(old);
        CHECK((block[at] = malloc(size)) != NULL);
        memset(block[at], (int)at, size);
    }
    sleep_us(600000);
    for (size_t i = count / 2; i < count; i++) {
        CHECK(*(unsigned char *)block[i] == (unsigned char)i);
        free(block[i]);
    }
    sleep_us(600000);
    for (size_t i = count / 2; i < count; i++) {
        size_t size = sizes[kind[i]];
        CHECK((block[i] = malloc(size)) != NULL);
        memset(block[i], (int)i, size);
    }
    for (size_t i = 0; i < count; i++)
        CHECK(*(unsigned char *)block[i] == (unsigned char)i);
    return 0;
}

/* ---- runs ---- */

static enum fate run(const char *self, size_t mib, uint64_t seed, const char *library)
{
    char level[32], number[32];
    snprintf(level, sizeof level, "%zu", mib);
    snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
    return group_run(library, (const char *[]){self, "--mib", level, "--seed", number, NULL});
}

int main(int argc, char **argv)
{
    test_begin(0);
    size_t mib = test_option(argc, argv, "--mib", 0);
    if (mib != 0)
        return program(test_option(argc, argv, "--seed", 1), mib);
    test_watchdog((unsigned)test_option(argc, argv, "--seconds", 110));
    const char *library = getenv("TEST_LIBRARY");
    if (library == NULL)
        SKIP("TEST_LIBRARY names no library");
    uint64_t seed = test_seed_from(NULL);
    if (!group_make(LIMIT_MIB * MIB))
        SKIP("no control group with a memory limit can be made here");
    size_t step = test_option(argc, argv, "--step", 12), worse = 0;
    const char *sync = getenv("SUTLER_SYNC");
    int cpus[64];
    bool has_manager = (sync == NULL || strcmp(sync, "rcs") == 0) && proc_cpus(cpus, 64) >= 2 && !proc_is_filtered();
    size_t most = test_option(argc, argv, "--most", has_manager ? 244 : 232);
    enum fate system = fate_done;
    for (size_t level = test_option(argc, argv, "--from", 220); system == fate_done && level <= most; level += step) {
        system = run(argv[0], level, seed, NULL);
        enum fate own = run(argv[0], level, seed, library);
        test_say("%zu MiB: the system's malloc %s, the library %s\n", level,
                 fate_name[system], fate_name[own]);
        if (own != fate_done && system == fate_done && worse == 0)
            worse = level;
    }
    group_remove();
    CHECK_MSG(worse == 0, "killed for memory at %zu MiB, where the system's malloc is not", worse);
    return 0;
}
