/* SPDX-License-Identifier: MIT
 *
 * Why: interpreters, databases and string classes append piece by piece.  Each of some strings in turn grows by `step`
 * bytes with realloc, its size in memory is asked for (as redis and sqlite do at every turn), and at `max` bytes it is
 * freed and begun anew.  The byte behind every step is checked.  An operation is one append.
 */
#include "args.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <malloc.h>
#include <stdlib.h>

struct params {
    uint64_t threads, strings, step, max, ops;
};

struct string {
    unsigned char *text;
    uint64_t length;
};

static unsigned char mark_at(uint64_t string, uint64_t length)
{
    return (unsigned char)(string + length);
}

/* Returns how much was wrong. */
static uint64_t append(struct string *string, uint64_t number, const struct params *params)
{
    uint64_t errors = 0;
    if (string->length + params->step > params->max) {
        for (uint64_t at = params->step; at <= string->length; at += params->step)
            errors += string->text[at - 1] != mark_at(number, at);
        free(string->text);
        *string = (struct string){NULL, 0};
    }
    string->length += params->step;
    string->text = realloc(string->text, string->length);
    string->text[string->length - 1] = mark_at(number, string->length);
    return errors + (malloc_usable_size(string->text) < string->length);
}

static void strings_setup(struct worker *worker)
{
    const struct params *params = worker->team->params;
    worker->state = pages_map(params->strings * sizeof(struct string));
}

static void strings_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct string *strings = worker->state;
    uint64_t errors = 0;
    for (uint64_t op = 0, i = 0; op < params->ops; op++, i = i + 1 < params->strings ? i + 1 : 0)
        errors += append(&strings[i], i, params);
    worker->ops = params->ops;
    worker->errors = errors;
}

static void strings_finish(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct string *strings = worker->state;
    for (uint64_t i = 0; i < params->strings; i++)
        free(strings[i].text);
    pages_unmap(strings, params->strings * sizeof(struct string));
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 1, .strings = 100, .step = 12, .max = 600, .ops = 20000000};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each with its own strings"},
        {"strings", ARG_COUNT, &params.strings, "strings of a thread"},
        {"step", ARG_COUNT, &params.step, "bytes of an append"},
        {"max", ARG_COUNT, &params.max, "bytes at which a string is begun anew"},
        {"ops", ARG_COUNT, &params.ops, "appends per thread"},
    };
    ARGS_READ("strings", argc, argv, args);
    if (!params.strings || !params.step || params.step > params.max)
        args_reject("strings, step, max", "at least 1, and step at most max");
    const struct team team = {.threads = params.threads,
                              .setup = strings_setup,
                              .work = strings_work,
                              .finish = strings_finish,
                              .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("strings", params.threads, outcome.ops, outcome.ns);
    result_count("strings", params.strings);
    return result_end(outcome.errors);
}
