/* SPDX-License-Identifier: MIT */
#include "hardened/report.h"

#include "hardened/trace.h"
#include "os/line.h"

static const char *const allocated_by[family_count] = {"malloc", "new", "new[]"};
static const char *const freed_by[family_count] = {"free", "delete", "delete[]"};

COLD void report_not_live(const char *function, const void *p)
{
    struct live live;
    if (harden_find(p, &live) == found_freed) {
        report_double_free(function, p);
        return;
    }
    struct block block = block_find(p);
    if (block_is_valid(block.kind)) /* where one could be, but none was handed out */
        report_invalid(function, p, "not the start of a block");
    else
        report_block(function, p, block);
}

COLD void report_overflow(const char *function, const void *p)
{
    report_misuse(function, "overflow", p, "bytes behind the block were written to");
}

COLD void report_written(const char *function, const void *p)
{
    report_misuse(function, "write after free", p, "a freed block was written to");
}

COLD void report_wrong_size(const char *function, const void *p, size_t size, size_t claimed)
{
    struct line reason = LINE_EMPTY;
    line_add(&reason, "allocated with %lu bytes, freed with %lu", size, claimed);
    report_misuse(function, "wrong size", p, line_end(&reason));
}

COLD void report_family(const char *function, const void *p, enum family family, enum family claimed)
{
    struct line reason = LINE_EMPTY;
    line_add(&reason, "allocated by %s, freed by %s", allocated_by[family], freed_by[claimed]);
    report_misuse(function, "mismatched free", p, line_end(&reason));
}

/* ---- SUTLER_REPORT=long ---- */

static void add_kind(struct line *line, struct live live)
{
    line_add(line, live.kind == block_superblock ? "class of %lu" : "large, %lu bytes", live.bytes);
}

static void add_live(struct line *line, const char *what, const void *p, struct live live)
{
    line_add(line, "%s%p: %lu bytes asked for, ", what, p, live.size);
    add_kind(line, live);
    line_add(line, ", from %s\n", allocated_by[live.family]);
}

static void add_freed(struct line *line, const void *p, struct live live)
{
    line_add(line, "sutler:   freed block %p: ", p);
    add_kind(line, live);
    line_text(line, "\n");
}

/* What SUTLER_TRACE remembers: the last free of a block that was there. */
static void add_trace(struct line *line, const void *p)
{
    struct freed freed = trace_find(p);
    if (freed.block == NULL)
        return;
    line_add(line, "sutler:   it had %lu bytes and was freed by thread %lu at %p, %lu frees ago\n", freed.size,
             (unsigned long)freed.thread, freed.caller, trace_total() - freed.number);
}

static void add_any(struct line *line, const void *p)
{
    struct live live = {0};
    const enum found found = harden_find(p, &live);
    if (found == found_live)
        add_live(line, "sutler:   live block ", p, live);
    else if (found == found_freed && live.bytes != 0)
        add_freed(line, p, live);
    add_trace(line, p);
}

static void add_neighbour(struct line *line, const char *what, const void *p)
{
    struct live live;
    if (harden_has_state(p) && harden_find(p, &live) == found_live)
        add_live(line, what, p, live);
}

/* Of a pointer into a block: that block. */
static void add_inside(struct line *line, const char *start, const void *p)
{
    line_add(line, "sutler:   it lies %lu bytes into the block at %p\n", (uint64_t)((const char *)p - start), start);
    add_any(line, start);
}

static void add_around(struct line *line, const struct superblock *s, const void *p)
{
    const char *start = superblock_block(s, superblock_block_number(s, p));
    if (start != p)
        add_inside(line, start, p);
    add_neighbour(line, "sutler:   before it ", start - s->block_bytes);
    add_neighbour(line, "sutler:   behind it ", start + s->block_bytes);
}

COLD void report_more(struct line *line, const void *p)
{
    if (!marks.report_long || !core_ready())
        return;
    add_any(line, p);
    const struct superblock *s = region_contains(p) ? superblock_of(p) : NULL;
    if (s != NULL && s->slice.kind == slice_superblock && (uintptr_t)p >= s->base)
        add_around(line, s, p);
}
