/* SPDX-License-Identifier: MIT
 *
 * glibc's questions about the heap, answered for ours, and macOS's about sizes.
 *
 * mallopt: all of glibc's M_ options are accepted and have no effect (1 is returned) because what they tune does not
 * exist here, except M_TRIM_THRESHOLD and the like being hints anyway; unknown ones return 0.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#include "core/core.h"
#include "core/summary.h"
#include "manager/snapshot.h"
#include "heap/large.h"
#include "os/line.h"

static NOINLINE size_t find_usable_size(const void *p)
{
    if (p == NULL)
        return 0;
    struct block block = block_find(p);
    if (unlikely(!block_is_valid(block.kind)))
        report_block("malloc_usable_size", p, block);
    return block.bytes == BYTES_UNKNOWN ? 0 : block.bytes;
}

/* Programs that count their memory (redis) ask at every malloc and free. */
EXPORT size_t malloc_usable_size(void *p)
{
    size_t bytes = block_bytes_quick(p);
    return likely(bytes != 0) ? bytes : find_usable_size(p);
}

size_t malloc_good_size(size_t size);
EXPORT size_t malloc_good_size(size_t size)
{
    return good_size(size, 1);
}

/* musl declares none of these. */
int mallopt(int parameter, int value);
int malloc_trim(size_t pad);
int malloc_info(int options, FILE *file);
void malloc_stats(void);

EXPORT int malloc_trim(size_t pad)
{
    (void)pad;
    return sutler_purge() > 0;
}

EXPORT int mallopt(int parameter, int value)
{
    (void)value;
    switch (parameter) {
#ifdef M_MXFAST
    case M_MXFAST:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
        return 1;
#endif
    default:
        return 0;
    }
}

struct summary {
    struct sutler_stats stats;
    size_t small_bytes; /* arena: what superblocks and spans occupy, without mappings of their own */
    size_t used_bytes;  /* of that, in the program's hands */
    size_t mapping_blocks, mapping_bytes;
};

static struct summary summarise(void)
{
    struct summary s = {0};
    snapshot_take(&s.stats);
    struct large_counts large = large_counts();
    s.mapping_bytes = large.mapping_bytes;
    /* The figures were taken one after the other: a mapping made meanwhile may be in one and not the other. */
    s.small_bytes = s.stats.mapped_bytes - min_size(s.stats.mapped_bytes, large.mapping_bytes);
    s.used_bytes = s.stats.live_bytes - min_size(s.stats.live_bytes, large.mapping_bytes);
    s.mapping_blocks = large.mapping_blocks;
    return s;
}

#define MALLINFO(type, number)                                                                                         \
    struct summary s = summarise();                                                                                    \
    return (struct type)                                                                                               \
    {                                                                                                                  \
        .arena = number(s.small_bytes), .hblks = number(s.mapping_blocks), .hblkhd = number(s.mapping_bytes),          \
        .uordblks = number(s.used_bytes), .fordblks = number(s.small_bytes - min_size(s.small_bytes, s.used_bytes)),   \
        .keepcost = number(s.stats.dirty_bytes),                                                                       \
    }

#if SUTLER_HAS_MALLINFO2 /* glibc 2.33 */
EXPORT struct mallinfo2 mallinfo2(void)
{
    MALLINFO(mallinfo2, );
}
#endif

#if SUTLER_HAS_MALLINFO
static int to_int(size_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/* The old form, whose ints stop at 2 GiB. */
EXPORT struct mallinfo mallinfo(void)
{
    MALLINFO(mallinfo, to_int);
}
#pragma GCC diagnostic pop
#endif

EXPORT void malloc_stats(void)
{
    summary_write(2, false);
}

EXPORT int malloc_info(int options, FILE *file)
{
    if (options != 0)
        return EINVAL;
    struct summary s = summarise();
    fprintf(file,
            "<malloc version=\"sutler-%s\">\n"
            "<heap nr=\"0\">\n"
            "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n"
            "</heap>\n"
            "</malloc>\n",
            sutler_version(), s.stats.superblocks, s.stats.free_bytes + s.stats.dirty_bytes, s.mapping_blocks,
            s.mapping_bytes, s.stats.span_bytes + s.mapping_bytes, s.stats.mapped_bytes);
    return ferror(file) ? -1 : 0;
}
