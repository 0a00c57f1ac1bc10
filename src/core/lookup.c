/* SPDX-License-Identifier: MIT
 *
 * From an address to what it is, and the two error lines for an address that is nothing.
 */
#include <stdlib.h>

#include "core/core.h"
#include "heap/signal_safe.h"
#include "heap/large.h"
#include "options/options.h"
#include "os/errors.h"

static const char not_ours[] = "not from this allocator";
static const char not_start[] = "not the start of a block";

static struct block invalid(const char *reason)
{
    return (struct block){.kind = block_invalid, .reason = reason};
}

static struct block in_superblock(struct superblock *s, const void *p)
{
    if (s->slice.kind != slice_superblock && s->slice.kind != slice_quarantine)
        return invalid(not_start);
    if (s->slice.kind == slice_quarantine)
        return (struct block){.kind = block_quarantined, .superblock = s, .bytes = s->block_bytes};
    if (!superblock_is_block(s, p))
        return invalid(not_start);
    return (struct block){.kind = block_superblock, .superblock = s, .bytes = s->block_bytes};
}

/* The first slice at or below this one whose descriptor says what it is. */
static uint32_t known_at_or_below(uint32_t at)
{
    const struct slice *s = slice_at(at);
    if (s->kind == slice_free_end)
        return s->first;
    while (at > 0 && slice_at(at)->kind == slice_unknown && region_contains(slice_address(at - 1)))
        at--;
    return at;
}

/* `p` lies in a slice that is not the first of anything: inside a large block, or in free memory, where freed large
 * blocks may have been merged.  Only errors come here, so the search may take its time. */
static struct block inside_span(const void *p)
{
    uint32_t first = known_at_or_below(slice_of(p));
    const struct slice *s = slice_at(first);
    bool is_inside = slice_of(p) - first < s->slices;
    if (s->kind == slice_large && is_inside)
        return invalid(not_start);
    bool was_freed = s->kind == slice_free || s->kind == slice_kept;
    if (was_freed && is_inside && (uintptr_t)p % SLICE_BYTES == 0)
        return (struct block){.kind = block_free};
    return invalid(not_ours);
}

static struct block in_signal_safe(const void *p)
{
    size_t bytes = signal_safe_bytes(p);
    if (bytes == 0)
        return signal_safe_was_freed(p) ? (struct block){.kind = block_free} : invalid(not_start);
    return (struct block){.kind = block_signal_safe, .bytes = bytes};
}

static struct block in_mapping(const void *p)
{
    bool waits = slow_enter();
    size_t bytes = mapping_bytes(p, waits);
    if (waits)
        slow_leave();
    if (bytes == 0)
        return invalid(not_ours);
    return (struct block){.kind = block_mapping, .bytes = bytes};
}

struct block block_find(const void *p)
{
    if (!core_ready())
        return invalid(not_ours);
    if (!region_contains(p))
        return signal_safe_contains(p) ? in_signal_safe(p) : in_mapping(p);
    switch (slice_kind(slice_at(slice_of(p)))) {
    case slice_superblock:
    case slice_quarantine:
    case slice_tail:
        return in_superblock(superblock_of(p), p);
    case slice_large:
        if ((uintptr_t)p % SLICE_BYTES != 0)
            return invalid(not_start);
        return (struct block){.kind = block_large, .bytes = large_span_bytes(p)};
    default: {
        /* The system may put a mapping where the region has a gap. */
        struct block block = in_mapping(p);
        return block.kind == block_mapping && block.bytes != BYTES_UNKNOWN ? block : inside_span(p);
    }
    }
}

static void finish(struct line *line, const void *p)
{
#ifdef SUTLER_HARDENED
    report_more(line, p);
#else
    (void)p;
#endif
    error_tell(line);
    if (option_get(option_on_error) == on_error_abort)
        abort();
}

COLD void report_misuse(const char *function, const char *what, const void *p, const char *reason)
{
    struct line line = LINE_EMPTY;
    line_add(&line, "sutler: %s(): %s %p (%s)\n", function, what, p, reason);
    finish(&line, p);
}

COLD void report_invalid(const char *function, const void *p, const char *reason)
{
    report_misuse(function, "invalid pointer", p, reason);
}

COLD void report_block(const char *function, const void *p, struct block block)
{
    if (block.kind == block_free)
        report_double_free(function, p);
    else
        report_invalid(function, p, block.reason);
}

COLD void report_double_free(const char *function, const void *p)
{
    report_misuse(function, "double free", p, "block is already free");
}
