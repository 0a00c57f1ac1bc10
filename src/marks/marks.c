/* SPDX-License-Identifier: MIT */
#include "marks/marks.h"

#include "base/bits.h"
#include "os/filter.h"
#include "os/line.h"
#include "os/os.h"

union marks_page marks_page __attribute__((aligned(MARKS_BYTES)));
#undef marks
#define marks marks_page.marks

static const struct {
    const char *name;
    bool on;
} row[mitigation_count] = {
#define MITIGATION(name, on, cost, stops, test) {#name, on},
#include "marks/mitigations.def"
#undef MITIGATION
};

/* `text` begins with `prefix`: the rest, or NULL. */
static const char *after(const char *text, const char *prefix)
{
    while (*prefix != '\0')
        if (*text++ != *prefix++)
            return NULL;
    return text;
}

static void warn(const char *entry, const char *why)
{
    struct line line = LINE_EMPTY;
    line_add(&line, "sutler: %s: %s; ignored\n", entry, why);
    line_tell(&line);
}

/* One word of SUTLER_HARDEN: a row, or "all"; false if there is none of the name. */
static bool switch_row(const char *name, size_t length, bool on)
{
    bool found = false;
    for (unsigned i = 0; i < mitigation_count; i++) {
        const char *names[] = {row[i].name, "all"};
        for (unsigned k = 0; k < ARRAY_LEN(names); k++)
            if (text_length(names[k]) == length && __builtin_memcmp(names[k], name, length) == 0)
                marks.on[i] = on, found = true;
    }
    return found;
}

/* "row,-row,..." */
static bool switch_rows(const char *list)
{
    bool understood = true;
    while (*list != '\0') {
        bool on = *list != '-';
        const char *name = list + !on;
        size_t length = 0;
        while (name[length] != ',' && name[length] != '\0')
            length++;
        understood &= length == 0 || switch_row(name, length, on);
        list = name + length + (name[length] == ',');
    }
    return understood;
}

static bool read_trace(const char *digits)
{
    uint32_t n = 0;
    for (; *digits >= '0' && *digits <= '9' && n < 1u << 20; digits++)
        n = n * 10 + (uint32_t)(*digits - '0');
    marks.trace = n > 1u << 20 ? 1u << 20 : n;
    return *digits == '\0';
}

static bool read_report(const char *word)
{
    marks.report_long = text_equal(word, "long");
    return marks.report_long || text_equal(word, "short");
}

static bool read_sweep(const char *word)
{
    static const char *const name[] = {[sweep_off] = "off", [sweep_on] = "on", [sweep_auto] = "auto"};
    for (unsigned i = 0; i < ARRAY_LEN(name); i++)
        if (text_equal(word, name[i])) {
            marks.sweep = (uint8_t)i;
            return true;
        }
    return false;
}

static void take_entry(const char *entry)
{
    static const struct {
        const char *prefix;
        bool (*read)(const char *value);
    } reader[] = {{"SUTLER_HARDEN=", switch_rows},
                  {"SUTLER_TRACE=", read_trace},
                  {"SUTLER_REPORT=", read_report},
                  {"SUTLER_SWEEP=", read_sweep}};
    for (unsigned i = 0; i < ARRAY_LEN(reader); i++) {
        const char *value = after(entry, reader[i].prefix);
        if (value != NULL && !reader[i].read(value))
            warn(entry, "not understood");
    }
}

/* Whether the system calls may be made that it takes. */
static bool can_sweep(void)
{
    bool can = need_begins(need_plain);
    if (can)
        need_ends();
    return can;
}

static uint64_t draw(void)
{
    uint64_t high = os_random();
    return high << 32 | os_random();
}

void marks_start(void)
{
    for (unsigned i = 0; i < mitigation_count; i++)
        marks.on[i] = row[i].on;
    os_env_each("SUTLER_", take_entry);
    marks.link_key = marks.on[mitigation_links] ? draw() : 0;
    marks.canary_key = draw();
    marks.order_key = draw() | 1;
    marks.factor = FACTOR;
    marks.inverse = INVERSE;
    marks.single_threaded = os_single_threaded();
    /* A pointer one past the end points into the block. */
    marks.pad = marks.on[mitigation_canary] || marks.sweep != sweep_off;
    marks.guard_bytes = marks.on[mitigation_guard] ? os_page_bytes : 0;
    if (marks.sweep != sweep_off && !can_sweep()) {
        if (marks.sweep == sweep_on)
            warn("SUTLER_SWEEP=on", "no sweep is possible under a seccomp filter");
        marks.sweep = sweep_off;
    }
    if (marks.sweep != sweep_off) /* kept blocks must not point to each other */
        marks.on[mitigation_zero] = marks.on[mitigation_quarantine] = true;
    if (!marks.on[mitigation_zero])
        marks.on[mitigation_check] = false; /* there is nothing to compare with */
    marks.usual = marks.on[mitigation_canary] && marks.on[mitigation_check] && marks.on[mitigation_quarantine] &&
                  !marks.on[mitigation_family] && marks.trace == 0;
}

void marks_place_states(uintptr_t of_address_0)
{
    marks.states = of_address_0;
}

void marks_seal(void)
{
    if (os_page_bytes == MARKS_BYTES)
        os_set_writable(&marks_page, MARKS_BYTES, false);
}
