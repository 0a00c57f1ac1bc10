/* SPDX-License-Identifier: MIT
 *
 * A limit on address space, and memory that is free but not given back yet: large freed mappings the manager is
 * unmapping at that moment, or has not come to; a window of small blocks that were all freed.  A request that fits when
 * they are gone must not be refused.
 */
#include "support/proc.h"
#include <sys/resource.h>

static size_t address_space(void)
{
    char text[256];
    proc_read("/proc/self/statm", text, sizeof text);
    return (size_t)strtoull(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit_to(size_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        SKIP("RLIMIT_AS may not be set here: errno %d", errno);
}

static char *take(size_t mib)
{
    char *p = malloc(mib * MIB);
    CHECK_MSG(p != NULL, "%zu MiB refused", mib);
    for (size_t i = 0; i < mib * MIB; i += 4096)
        p[i] = (char)i;
    return p;
}

/* Makes the manager start. */
static void grow(void)
{
    for (int i = 0; i < 700; i++)
        memset(malloc(64 * KIB), 1, 64 * KIB);
    usleep(300000);
}

static void freed_then_another(unsigned round)
{
    free(take(180));
    usleep(round * 300);
    free(take(260));
    usleep(round * 300);
}

static void freed_then_grown(unsigned round)
{
    char *p = take(100);
    free(take(180));
    usleep(round * 300);
    p = realloc(p, 250 * MIB);
    CHECK_MSG(p != NULL, "realloc from 100 to 250 MiB refused");
    for (size_t i = 0; i < 100 * MIB; i += 4096)
        CHECK(p[i] == (char)i);
    free(p);
}

static void small_then_large(void)
{
    enum { count = 200 * 1024 };
    char **block = calloc(count, sizeof *block);
    for (size_t i = 0; i < count; i++)
        CHECK((block[i] = malloc(1000)) != NULL);
    for (size_t i = 0; i < count; i++)
        free(block[i]);
    free(block);
    char *zero = calloc(150, MIB);
    CHECK_MSG(zero != NULL, "150 MiB refused with 200 MiB free");
    for (size_t i = 0; i < 150 * MIB; i++)
        CHECK(zero[i] == 0);
    free(zero);
}

int main(int argc, char **argv)
{
    test_begin(100);
    unsigned rounds = (unsigned)test_option(argc, argv, "--rounds", 10);
    grow();
    limit_to(address_space() + 330 * MIB); /* a block may be a quarter larger than asked for, when one is used again */
    for (unsigned round = 0; round < rounds; round++) {
        freed_then_another(round % 10);
        freed_then_grown(round % 10);
    }
    small_then_large();
    CHECK(malloc((size_t)1 << 46) == NULL && errno == ENOMEM);
    void *unaligned = NULL;
    CHECK(posix_memalign(&unaligned, (size_t)1 << 45, 1) == ENOMEM);
    return 0;
}
