/* SPDX-License-Identifier: MIT
 *
 * Options, one row each in options.def: a value is a small number, the position of the chosen word in the row.
 * Read from the environment once, before the first block is handed out; see docs/options.md.
 */
#ifndef SUTLER_OPTIONS_OPTIONS_H
#define SUTLER_OPTIONS_OPTIONS_H

#include "base/compiler.h"

enum option {
#define OPTION(name, choices, fallback, settable, doc) option_##name,
#include "options/options.def"
#undef OPTION
    option_count
};

enum { on_error_abort, on_error_report };
enum { stats_off, stats_text, stats_json };
enum { manager_auto, manager_on, manager_off };
enum { huge_pages_auto, huge_pages_on, huge_pages_off };
enum { deepbind_on, deepbind_off };

extern _Atomic unsigned char option_value[option_count];

static inline unsigned option_get(enum option o)
{
    return __atomic_load_n((unsigned char *)&option_value[o], __ATOMIC_RELAXED);
}

/* Reads SUTLER_* from the environment; one warning on standard error for each it does not know. */
void options_read(void);

/* Position of the option called `name` (lower case), or option_count. */
enum option option_find(const char *name);

/* 0, EINVAL for an unknown word, EPERM if it can only be set by the environment. */
int option_set(enum option o, const char *word);

/* Writes the chosen word, or the whole list of choices, into a buffer; returns the length it would need. */
size_t option_word(enum option o, char *buffer, size_t size);

#endif
