/* SPDX-License-Identifier: MIT
 *
 * Why: see args.h.  Reading needs no memory of its own and happens before anything is measured.
 */
#define _GNU_SOURCE
#include "args.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static uint64_t seed = 1;
static const char *pin = "";
static const char *thp = "on";
static const char *program_name = "bench";

static const struct arg common_args[] = {
    {"seed", ARG_COUNT, &seed, "start of every random stream"},
    {"pin", ARG_TEXT, &pin, "cpu to keep the whole process on"},
    {"thp", ARG_TEXT, &thp, "on, or off: no transparent huge pages in this process"},
};
enum { COMMON_ARGS = sizeof(common_args) / sizeof(common_args[0]) };

uint64_t args_seed(void)
{
    return seed;
}

void args_reject(const char *name, const char *reason)
{
    fprintf(stderr, "%s: %s: %s (try `%s help`)\n", program_name, name, reason, program_name);
    exit(2);
}

static void help_print(const struct arg *args, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (args[i].kind == ARG_COUNT)
            printf("  %s=%llu", args[i].name, (unsigned long long)*(const uint64_t *)args[i].value);
        else
            printf("  %s=%s", args[i].name, *(const char *const *)args[i].value);
        printf("  %s\n", args[i].help);
    }
}

static bool count_read(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (end == text || errno || *text == '-')
        return false;
    unsigned shift = 0;
    switch (*end) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    }
    if (shift)
        end++;
    if (*end || number > UINT64_MAX >> shift)
        return false;
    *value = number << shift;
    return true;
}

static const struct arg *arg_find(const struct arg *args, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(args[i].name) == length && !memcmp(args[i].name, name, length))
            return &args[i];
    }
    return NULL;
}

static void common_apply(void)
{
    if (!strcmp(thp, "off")) {
        if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
            args_reject("thp", strerror(errno));
    } else if (strcmp(thp, "on")) {
        args_reject("thp", "on or off");
    }
    if (*pin) {
        uint64_t cpu;
        cpu_set_t cpus;
        if (!count_read(pin, &cpu) || cpu >= CPU_SETSIZE)
            args_reject("pin", "not a cpu number");
        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
        if (sched_setaffinity(0, sizeof(cpus), &cpus))
            args_reject("pin", strerror(errno));
    }
}

void args_read(const char *program, int argc, char **argv, const struct arg *args, size_t arg_count)
{
    program_name = program;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "help") || !strcmp(argv[i], "--help")) {
            printf("%s [key=value ...]\n", program);
            help_print(args, arg_count);
            help_print(common_args, COMMON_ARGS);
            exit(0);
        }
        const char *equals = strchr(argv[i], '=');
        if (!equals)
            args_reject(argv[i], "expected key=value");
        size_t length = (size_t)(equals - argv[i]);
        const struct arg *arg = arg_find(args, arg_count, argv[i], length);
        if (!arg)
            arg = arg_find(common_args, COMMON_ARGS, argv[i], length);
        if (!arg)
            args_reject(argv[i], "unknown key");
        if (arg->kind == ARG_TEXT)
            *(const char **)arg->value = equals + 1;
        else if (!count_read(equals + 1, (uint64_t *)arg->value))
            args_reject(argv[i], "not a count");
    }
    common_apply();
}
