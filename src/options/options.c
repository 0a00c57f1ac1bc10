/* SPDX-License-Identifier: MIT */
#include "options/options.h"

#include <errno.h>

#include "base/bits.h"
#include "os/line.h"
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

/* Position of `word` in a comma-separated list, or -1. */
static int choice_position(const char *choices, const char *word)
{
    for (int position = 0;; position++) {
        size_t n = 0;
        while (choices[n] != '\0' && choices[n] != ',' && choices[n] == word[n])
            n++;
        if ((choices[n] == ',' || choices[n] == '\0') && word[n] == '\0')
            return position;
        while (*choices != '\0' && *choices != ',')
            choices++;
        if (*choices++ == '\0')
            return -1;
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
        size_t n = 0, next = 0;
        while (choices[n] != ',' && choices[n] != '\0')
            n++;
        line_part(line, choices, n);
        if (choices[n] == '\0')
            return;
        choices += n + 1;
        while (choices[next] != ',' && choices[next] != '\0')
            next++;
        line_text(line, choices[next] == '\0' ? " or " : ", ");
    }
}

static void warn(const char *entry, size_t name_length, const char *choices)
{
    struct line line = LINE_EMPTY;
    line_text(&line, "sutler: ");
    line_part(&line, entry, name_length);
    if (choices == NULL) {
        line_text(&line, ": unknown option; ignored\n");
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

/* No mistakes, and none of ours: those of the engines (papers/engines/), which may have us as the library below them, of the tool
 * and of the tests. */
static bool is_for_others(const char *name)
{
    static const char *const names[] = {
        "engine_backend", "engine_spins", "harden", "report", "sweep", "trace", "lfb", "mmt_design", "checks", "checks_options", "library", "test_seed"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (text_equal(name, names[i]))
            return true;
    return false;
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
    enum option o = option_find(name);
    if (o == option_count) {
        if (!is_for_others(name))
            warn(entry, length, NULL);
        return;
    }
    int position = choice_position(row[o].choices, entry + length + 1);
    if (position < 0)
        warn(entry, length, row[o].choices);
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
    size_t n = 0;
    for (; at[n] != '\0' && at[n] != ','; n++)
        if (n + 1 < size)
            buffer[n] = at[n];
    if (size > 0)
        buffer[min_size(n, size - 1)] = '\0';
    return n;
}

const char *option_name(enum option o)
{
    return row[o].name;
}
