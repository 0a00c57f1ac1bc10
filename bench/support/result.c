/* SPDX-License-Identifier: MIT
 *
 * Why: see result.h.
 */
#define _GNU_SOURCE
#include "result.h"

#include "memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static char line[4096];
static size_t line_length;
static const char *program_name;

__attribute__((format(printf, 1, 2))) static void line_add(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int added = vsnprintf(line + line_length, sizeof(line) - line_length, format, values);
    va_end(values);
    if (added > 0 && line_length + (size_t)added < sizeof(line))
        line_length += (size_t)added;
}

void result_begin(const char *name, uint64_t threads, uint64_t ops, uint64_t ns)
{
    program_name = name;
    line_length = 0;
    line_add("name=%s threads=%llu ops=%llu seconds=%.6f ns_per_op=%.4f", name, (unsigned long long)threads,
             (unsigned long long)ops, (double)ns / 1e9, ops ? (double)ns / (double)ops : 0.0);
}

void result_count(const char *key, uint64_t value)
{
    line_add(" %s=%llu", key, (unsigned long long)value);
}

void result_real(const char *key, double value)
{
    line_add(" %s=%.6g", key, value);
}

void result_text(const char *key, const char *value)
{
    line_add(" %s=%s", key, value);
}

/* Under one of the papers' engines: what it counted. */
extern void sutler_engine_counts(void (*each)(const char *name, uint64_t value)) __attribute__((weak));

int result_end(uint64_t errors)
{
    struct rusage usage;
    if (errors) {
        fprintf(stderr, "%s: %llu wrong results\n", program_name, (unsigned long long)errors);
        return 1;
    }
    if (sutler_engine_counts != NULL)
        sutler_engine_counts(result_count);
    getrusage(RUSAGE_SELF, &usage);
    line_add(" cpu_seconds=%.6f faults=%ld peak_rss_kib=%llu\n",
             (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
             usage.ru_minflt, (unsigned long long)memory_peak_kib());
    return write(STDOUT_FILENO, line, line_length) == (ssize_t)line_length ? 0 : 3;
}
