/* SPDX-License-Identifier: MIT
 *
 * Why: suites name programs and their parameters as data, so every program takes the same form: NAME key=value ...
 * with defaults for everything, `help` to list them, and a hard error for a key it does not know (a misspelt parameter
 * must not silently measure the default).
 *
 * Counts accept a K, M or G suffix (powers of 1024).  Three keys are common to all programs and handled here:
 *     seed=N    start of every random stream (default 1)
 *     pin=CPU   the whole process, threads included, on one cpu (default: not pinned)
 *     thp=off   transparent huge pages off for this process (prctl PR_SET_THP_DISABLE)
 */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum arg_kind {
    ARG_COUNT, /* value points to a uint64_t */
    ARG_TEXT,  /* value points to a const char * */
};

struct arg {
    const char *name;
    enum arg_kind kind;
    void *value; /* holds the default before args_read */
    const char *help;
};

/* Reads argv into the table's values; exits with status 2 and a message on anything it does not understand. */
void args_read(const char *program, int argc, char **argv, const struct arg *args, size_t arg_count);

/* For values only the program can judge (a ratio out of range, an unknown shape): message, exit status 2. */
void args_reject(const char *name, const char *reason) __attribute__((noreturn));

/* The seed given, or 1. */
uint64_t args_seed(void);

#define ARGS_READ(program, argc, argv, args) args_read(program, argc, argv, args, sizeof(args) / sizeof((args)[0]))

#ifdef __cplusplus
}
#endif
#endif
