/* SPDX-License-Identifier: MIT */
#include "stats/stats.h"

#include "os/line.h"

static void write_text(struct line *line, int fd, const char *name, uint64_t value, bool is_bytes, const char *doc)
{
    line_add(line, "  %s", name);
    line_pad(line, 18);
    if (is_bytes)
        line_bytes(line, value);
    else
        line_dec(line, value);
    line_pad(line, 34);
    line_add(line, "%s\n", doc);
    line_flush(line, fd);
}

void stats_write(int fd, bool json, const struct sutler_stats *stats, const struct stats_fact *facts,
                 size_t fact_count)
{
    struct line line = LINE_EMPTY;
    line_text(&line, json ? "{\"sutler\":true" : "sutler: the heap\n");
    for (size_t i = 0; i < fact_count; i++) {
        line_add(&line, json ? ",\"%s\":\"" : "  %s", facts[i].name);
        if (!json)
            line_pad(&line, line.used + 16 - text_length(facts[i].name));
        line_add(&line, json ? "%s\"" : "%s\n", facts[i].value);
    }
    if (!json)
        line_flush(&line, fd);
#define STAT(field, is_bytes, doc)                                                                                     \
    if (json)                                                                                                          \
        line_add(&line, ",\"%s\":%lu", #field, stats->field);                                                          \
    else                                                                                                               \
        write_text(&line, fd, #field, stats->field, is_bytes, doc);
#include "stats/stats.def"
#undef STAT
    if (json) {
        line_text(&line, "}\n");
        line_flush(&line, fd);
    }
}
