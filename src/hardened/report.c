/* SPDX-License-Identifier: MIT */
#include "hardened/report.h"

#include "hardened/trace.h"
#include "os/line.h"

static const char *const allocated_by[family_count] = {"malloc", "new", "new[]"};
static const char *const freed_by[family_count] = {"free", "delete", "delete[]"};

static const char *line_end(struct line *line)
{
    line->text[line->used] = '\0';
    return line->text;
}

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
    line_text(&reason, "allocated with ");
    line_dec(&reason, size);
    line_text(&reason, " bytes, freed with ");
    line_dec(&reason, claimed);
    report_misuse(function, "wrong size", p, line_end(&reason));
}

COLD void report_family(const char *function, const void *p, enum family family, enum family claimed)
{
    struct line reason = LINE_EMPTY;
    line_text(&reason, "allocated by ");
    line_text(&reason, allocated_by[family]);
    line_text(&reason, ", freed by ");
    line_text(&reason, freed_by[claimed]);
    report_misuse(function, "mismatched free", p, line_end(&reason));
}

/* ---- SUTLER_REPORT=long ---- */

static void add_block(struct line *line, const char *what, const void *p, struct live live)
{
    line_text(line, what);
    line_hex(line, (uintptr_t)p);
    line_text(line, ": ");
    line_dec(line, live.size);
    line_text(line, " bytes asked for");
    if (live.kind == block_superblock) {
        line_text(line, ", class of ");
        line_dec(line, live.bytes);
    }
    line_text(line, ", from ");
    line_text(line, allocated_by[live.family]);
    line_text(line, "\n");
}

static void add_freed(struct line *line, const void *p)
{
    struct freed freed = trace_find(p);
    if (freed.block == NULL)
        return;
    line_text(line, "sutler:   it had ");
    line_dec(line, freed.size);
    line_text(line, " bytes and was freed by thread ");
    line_dec(line, freed.thread);
    line_text(line, " at ");
    line_hex(line, (uintptr_t)freed.caller);
    line_text(line, ", ");
    line_dec(line, trace_total() - freed.number);
    line_text(line, " frees ago\n");
}

static void add_neighbour(struct line *line, const char *what, const void *p)
{
    struct live live;
    if (region_contains(p) && harden_find(p, &live) == found_live)
        add_block(line, what, p, live);
}

COLD void report_more(struct line *line, const void *p)
{
    struct live live;
    if (!marks.report_long || !core_ready())
        return;
    const char *start = p;
    if (harden_find(p, &live) == found_live)
        add_block(line, "sutler:   live block ", p, live);
    add_freed(line, p);
    if (!region_contains(p) || superblock_of(p)->slice.kind != slice_superblock)
        return;
    const struct superblock *s = superblock_of(p);
    if ((uintptr_t)p < s->base)
        return;
    start = superblock_block(s, superblock_block_number(s, p));
    if (start != p) {
        line_text(line, "sutler:   it lies ");
        line_dec(line, (uint64_t)((const char *)p - start));
        line_text(line, " bytes into the block at ");
        line_hex(line, (uintptr_t)start);
        line_text(line, "\n");
        add_neighbour(line, "sutler:   live block ", start);
        add_freed(line, start);
    }
    add_neighbour(line, "sutler:   before it ", start - s->block_bytes);
    add_neighbour(line, "sutler:   behind it ", start + s->block_bytes);
}
