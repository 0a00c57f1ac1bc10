/* SPDX-License-Identifier: MIT
 *
 * What an engine has counted so far.
 */
#ifndef TESTS_ENGINES_COUNTS_H
#define TESTS_ENGINES_COUNTS_H

#include "engine.h"

extern void sutler_engine_counts(void (*each)(const char *name, uint64_t value)) __attribute__((weak));

static const char *counted_name;
static uint64_t counted_value;

static inline void counted_look(const char *name, uint64_t value)
{
    if (strcmp(name, counted_name) == 0)
        counted_value = value;
}

/* 0 if no engine has such a count. */
static inline uint64_t counted(const char *name)
{
    counted_name = name;
    counted_value = 0;
    CHECK(sutler_engine_counts != NULL);
    sutler_engine_counts(counted_look);
    return counted_value;
}

#endif
