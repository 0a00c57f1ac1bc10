/* SPDX-License-Identifier: MIT
 *
 * glibc's questions about the heap, answered for ours, and macOS's about sizes.
 *
 * mallopt: what only tunes glibc's malloc is accepted (1) and has no effect, as a hint may; a value that its manual
 * calls wrong is refused (0), and so is what would have to change what the program sees: M_PERTURB, M_CHECK_ACTION.
 * The table is in docs/tuning.md.
 *
 * Free memory is counted as such if it was in use before: not address space that was only ever opened.  It is in free
 * blocks, free spans and kept mappings; the last no longer count as "mmapped".
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#include "core/core.h"
#include "core/summary.h"
#include "heap/large.h"
#include "heap/purge.h"
#include "manager/snapshot.h"
#include "os/line.h"

#ifndef SUTLER_HARDENED /* there, in hardened/realloc.c */
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
size_t sutler_usable_size(void *p)
{
    size_t bytes = block_bytes_quick(p);
    return likely(bytes != 0) ? bytes : find_usable_size(p);
}
ALSO(malloc_usable_size, sutler_usable_size)
#endif

size_t malloc_good_size(size_t size);
EXPORT size_t malloc_good_size(size_t size)
{
    return good_size(size, 1);
}

/* musl declares none of these. */
int malloc_trim(size_t pad);
int malloc_info(int options, FILE *file);
void malloc_stats(void);

EXPORT int malloc_trim(size_t pad)
{
    if (!core_ready())
        return 0;
    quarantine_release_everything();
    if (!slow_enter())
        return 0;
    size_t bytes = heap_trim(pad);
    slow_leave();
    return bytes > 0;
}

#ifdef M_MXFAST /* musl has none of its parameters */
EXPORT int mallopt(int parameter, int value)
{
    switch (parameter) {
    case M_MXFAST:
        return value >= 0 && value <= (int)(80 * sizeof(size_t) / 4);
    case M_MMAP_THRESHOLD:
        return value >= 0 && (size_t)value <= 4 * 1024 * 1024 * sizeof(long);
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_MAX:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
        return 1;
    default:
        return 0;
    }
}
#endif

struct summary {
    struct sutler_stats stats;
    size_t used_bytes; /* in the program's hands, without mappings of their own */
    size_t free_bytes, free_blocks;
    size_t mapping_blocks, mapping_bytes;
};

static size_t free_block_count(void)
{
    struct snapshot_class classes[CLASS_COUNT];
    size_t count = 0;
    snapshot_classes(classes);
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        count += classes[c].free;
    return count;
}

static struct summary summarise(void)
{
    struct summary s = {0};
    snapshot_take(&s.stats);
    struct large_counts large = large_counts();
    s.mapping_bytes = large.mapping_bytes;
    s.mapping_blocks = large.mapping_blocks;
    /* The figures were taken one after the other: a mapping made meanwhile may be in one and not the other. */
    s.used_bytes = s.stats.live_bytes - min_size(s.stats.live_bytes, large.mapping_bytes);
    s.free_bytes = s.stats.free_bytes + s.stats.dirty_bytes;
    s.free_blocks = free_block_count() + (s.stats.dirty_bytes >> SLICE_SHIFT);
    return s;
}

#define MALLINFO(type, number)                                                                                         \
    struct summary s = summarise();                                                                                    \
    return (struct type)                                                                                               \
    {                                                                                                                  \
        .arena = number(s.used_bytes + s.free_bytes), .ordblks = number(s.free_blocks),                                \
        .hblks = number(s.mapping_blocks), .hblkhd = number(s.mapping_bytes), .uordblks = number(s.used_bytes),        \
        .fordblks = number(s.free_bytes), .keepcost = number(s.free_bytes),                                            \
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
    /* Tools ask for these names; "fast" blocks are glibc's own. */
    fprintf(file,
            "<malloc version=\"1\">\n"
            "<heap nr=\"0\">\n"
            "<sizes>\n"
            "</sizes>\n"
            "<total type=\"fast\" count=\"0\" size=\"0\"/>\n"
            "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n"
            "</heap>\n"
            "<total type=\"fast\" count=\"0\" size=\"0\"/>\n"
            "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n"
            "</malloc>\n",
            s.free_blocks, s.free_bytes, s.used_bytes + s.free_bytes,
            s.stats.mapped_bytes - min_size(s.stats.mapped_bytes, s.mapping_bytes), s.free_blocks, s.free_bytes,
            s.mapping_blocks, s.mapping_bytes, s.used_bytes + s.free_bytes + s.mapping_bytes, s.stats.mapped_bytes);
    return ferror(file) ? -1 : 0;
}
