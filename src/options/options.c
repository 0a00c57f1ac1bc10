/* SPDX-License-Identifier: MIT */
#include "options/options.h"

#include <errno.h>

#include "base/bits.h"
#include "os/errors.h"
#include "os/os.h"

struct option_row {
    const char *name, *choices;
    bool settable;
};

static const struct option_row row[option_count] = {
#define OPTION(name, choices, fallback, settable, doc) {#name, choices, settable},
#include "options/options.def"
#undef OPTION
};

_Atomic unsigned char option_value[option_count] = {
#define OPTION(name, choices, fallback, settable, doc) fallback,
#include "options/options.def"
#undef OPTION
};

#define PREFIX "SUTLER_"

static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Length of the first word of a comma-separated list. */
static size_t word_length(const char *list)
{
    size_t n = 0;
    while (list[n] != '\0' && list[n] != ',')
        n++;
    return n;
}

/* Position of `word` in such a list, or -1. */
static int choice_position(const char *choices, const char *word)
{
    for (int position = 0;; position++) {
        size_t n = word_length(choices);
        if (text_length(word) == n && text_begins(choices, word))
            return position;
        if (choices[n] == '\0')
            return -1;
        choices += n + 1;
    }
}

enum option option_find(const char *name)
{
    unsigned o = 0;
    while (o < option_count && !text_equal(row[o].name, name))
        o++;
    return (enum option)o;
}

/* At most this much of what the user wrote is repeated. */
#define ECHO_MAX 60

static void line_part(struct line *line, const char *text, size_t length)
{
    char part[ECHO_MAX + 4] = {0};
    for (size_t i = 0; i < length && i < ECHO_MAX; i++)
        part[i] = text[i];
    if (length > ECHO_MAX)
        part[ECHO_MAX] = part[ECHO_MAX + 1] = part[ECHO_MAX + 2] = '.';
    line_text(line, part);
}

/* "a, b or c" from "a,b,c". */
static void line_choices(struct line *line, const char *choices)
{
    for (;;) {
        size_t n = word_length(choices);
        line_part(line, choices, n);
        if (choices[n] == '\0')
            return;
        choices += n + 1;
        line_text(line, choices[word_length(choices)] == '\0' ? " or " : ", ");
    }
}

/* `why`: it is no option; NULL: its value is none of these. */
static void warn(const char *entry, size_t name_length, const char *why, const char *choices)
{
    struct line line = LINE_EMPTY;
    line_text(&line, "sutler: ");
    line_part(&line, entry, name_length);
    if (why != NULL) {
        line_text(&line, why);
    } else {
        const char *value = entry + name_length + 1;
        line_text(&line, ": unknown value '");
        line_part(&line, value, text_length(value));
        line_text(&line, "' (");
        line_choices(&line, choices);
        line_text(&line, "); ignored\n");
    }
    line_tell(&line);
}

/* Variables that others read: the engines (papers/engines), which may run over this library, the hardened library, the
 * tool and the tests. */
static bool is_for_others(const char *name)
{
    static const char *const names[] = {
        "engine_backend", "engine_spins", "harden", "report", "sweep", "trace", "lfb", "mmt_design", "checks",
        "checks_options", "policy", "library", "test_seed"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (text_equal(name, names[i]))
            return true;
    return false;
}

/* What this library did once, and the one of papers/policies does. */
static bool is_policy(const char *name, const char *value)
{
    return text_equal(name, "online") || (text_equal(name, "sync") && text_equal(value, "thread"));
}

/* `entry` is SUTLER_NAME=VALUE. */
static void take_entry(const char *entry)
{
    char name[32] = {0};
    size_t length = sizeof PREFIX - 1;
    for (size_t n = 0; entry[length] != '=' && entry[length] != '\0'; length++)
        if (n < sizeof name - 1)
            name[n++] = to_lower(entry[length]);
    if (entry[length] == '\0')
        return;
    const char *value = entry + length + 1;
    if (text_equal(name, "report_file")) {
        if (!error_to_file(value))
            warn(entry, length, ": the path is too long; ignored\n", NULL);
        return;
    }
    if (is_policy(name, value)) {
        warn(entry, length, ": this policy is only in libsutler_policies.so (papers/policies); ignored\n", NULL);
        return;
    }
    enum option o = option_find(name);
    if (o == option_count) {
        if (!is_for_others(name))
            warn(entry, length, ": unknown option; ignored\n", NULL);
        return;
    }
    int position = choice_position(row[o].choices, value);
    if (position < 0)
        warn(entry, length, NULL, row[o].choices);
    else
        option_value[o] = (unsigned char)position;
}

void options_read(void)
{
    os_env_each(PREFIX, take_entry);
}

int option_set(enum option o, const char *word)
{
    int position = choice_position(row[o].choices, word);
    if (position < 0)
        return EINVAL;
    if (!row[o].settable)
        return EPERM;
    option_value[o] = (unsigned char)position;
    return 0;
}

size_t option_word(enum option o, char *buffer, size_t size)
{
    const char *at = row[o].choices;
    for (unsigned skip = option_get(o); skip > 0; at++)
        skip -= *at == ',';
    size_t n = word_length(at), kept = size > 0 ? min_size(n, size - 1) : 0;
    for (size_t i = 0; i < kept; i++)
        buffer[i] = at[i];
    if (size > 0)
        buffer[kept] = '\0';
    return n;
}
