/* SPDX-License-Identifier: MIT
 *
 * A large block that two threads free at the same moment is freed by one of them, and the other is told so.  And which
 * blocks are spans, which mappings.
 */
#include "heap/large.h"

#include <malloc.h>
#include <pthread.h>

#include "heap/ample.h"
#include "heap/span.h"
#include "os/os.h"
#include "unit.h"

static char *block;
static _Atomic unsigned freed;
static bool (*give)(void *block);
static pthread_barrier_t both_ready, both_done;
static _Atomic unsigned at_the_line;

static void free_it(void)
{
    pthread_barrier_wait(&both_ready);
    unsigned arrived = ++at_the_line;
    while (at_the_line < arrived + (arrived & 1)) /* a barrier lets them go one after the other */
        continue;
    freed += give(block);
    pthread_barrier_wait(&both_done);
}

static unsigned rounds;

static void *other(void *unused)
{
    for (unsigned i = 0; i < rounds; i++)
        free_it();
    return unused;
}

static void freed_once(size_t bytes, bool (*how)(void *))
{
    pthread_t thread;
    give = how;
    EXPECT_EQ(pthread_create(&thread, NULL, other, NULL), 0);
    for (unsigned i = 0; i < rounds; i++) {
        size_t in_use = span_counts().in_use_bytes, large = large_counts().bytes;
        bool zero;
        freed = 0;
        EXPECT((block = large_take(bytes, 16, &zero)) != NULL);
        free_it();
        EXPECT_EQ(freed, 1);
        EXPECT_EQ(span_counts().in_use_bytes, in_use);
        EXPECT_EQ(large_counts().bytes, large);
    }
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

#define MIB ((size_t)1 << 20)

static char *stamped(char *p, size_t bytes)
{
    EXPECT(p != NULL && malloc_usable_size(p) >= bytes);
    p[0] = 7;
    p[bytes - 1] = 8;
    return p;
}

/* From 16 MiB on they are mappings; where memory is ample, from 64 MiB on. */
static void longer_spans_where_memory_is_ample(void)
{
    char *p = stamped(malloc(MAPPING_BYTES_MIN), MAPPING_BYTES_MIN);
    EXPECT(!region_contains(p));
    free(p);
    EXPECT(region_contains(p = stamped(malloc(MAPPING_BYTES_MIN - 1), MAPPING_BYTES_MIN - 1)));
    free(p);
    atomic_store(&unmap_is_async, true);
    ample_allow(300 * MIB, os_now_ns() + 600000000000ull, SIZE_MAX);
    EXPECT(region_contains(p = stamped(malloc(SPAN_BYTES_MAX), SPAN_BYTES_MAX)));
    char *other = stamped(malloc(SPAN_BYTES_MAX + 1), SPAN_BYTES_MAX + 1);
    EXPECT(!region_contains(other));
    free(other);
    EXPECT(!region_contains(other = aligned_alloc(MAPPING_BYTES_MIN, 20 * MIB)));
    free(other);
    free(p);
    mapping_trim(0); /* else what was freed last is had again */
    size_t dirty = span_dirty_bytes();
    EXPECT(region_contains(p = stamped(malloc(SPAN_BYTES_MAX), SPAN_BYTES_MAX)));
    EXPECT(span_dirty_bytes() + SPAN_BYTES_MAX / 2 <= dirty); /* in pages that are had again */
    ample_allow(span_dirty_bytes() + large_counts().cached_bytes + 20 * MIB, os_now_ns() + 600000000000ull, SIZE_MAX);
    EXPECT(region_contains(other = malloc(20 * MIB)));
    free(other);
    EXPECT(!region_contains(other = malloc(60 * MIB))); /* freed, it could not be kept */
    free(other);
    free(p);
}

/* One that has grown to such a size is a mapping, and stays so; where it was short it is as it was. */
static void what_grows_is_a_mapping(void)
{
    ample_allow(1000 * MIB, os_now_ns() + 600000000000ull, SIZE_MAX);
    char *p = stamped(malloc(10 * MIB), 10 * MIB), *after = malloc(10 * MIB);
    EXPECT(region_contains(p) && region_contains(after));
    for (size_t size = 30 * MIB; size <= 120 * MIB; size += 30 * MIB) {
        EXPECT((p = realloc(p, size)) != NULL && !region_contains(p));
        EXPECT(p[0] == 7 && p[10 * MIB - 1] == 8);
    }
    EXPECT((p = realloc(p, 5 * MIB)) != NULL && p[0] == 7);
    free(p);
    free(after);
    ample_allow(0, 0, 0);
    atomic_store(&unmap_is_async, false);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(300);
    rounds = (unsigned)unit_option(argc, argv, "--rounds", 3000);
    EXPECT_EQ(pthread_barrier_init(&both_ready, NULL, 2), 0);
    EXPECT_EQ(pthread_barrier_init(&both_done, NULL, 2), 0);
    free(malloc(1));
    freed_once(300000, large_span_give);
    freed_once(MAPPING_BYTES_MIN, mapping_give);
    longer_spans_where_memory_is_ample();
    what_grows_is_a_mapping();
    return 0;
}
