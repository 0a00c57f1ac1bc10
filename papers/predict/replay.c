/* SPDX-License-Identifier: MIT
 *
 * Why: how many arguments of a log (record.h) the predictors foresee, one step ahead each, in the form of the thesis's
 * table D.1: for each function, and for all functions together in the order of their calls.
 *
 *     predict_replay [--most CALLS] FILE...
 *
 * One line a sequence: what was replayed and, for each method, how many values were foreseen (the first can never be).
 * `orderN` is the context predictor of that order, `best` what the best by score foresaw, with the default order.
 */
#include "machine.h"
#include "predictors.h"
#include "record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORDERS        6
#define DEFAULT_ORDER 3

static const struct {
    const char *name;
    enum predict_kind kind;
    uint32_t arguments;
} functions[] = {
#define KIND_double PREDICT_DOUBLE
#define KIND_float  PREDICT_FLOAT
#define UNARY(name, type)  {#name, KIND_##type, 1},
#define BINARY(name, type) {#name, KIND_##type, 2},
#define PAIR(name, type)   {#name, KIND_##type, 1},
#include "functions.def"
};
enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };

static void *zeroed(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("predict_replay");
        exit(1);
    }
    return memory;
}

/* The record as a value: the arguments and the environment; in the sequence of all functions the function as well. */
static uint32_t value_of(const struct record *record, bool all, uint64_t *value)
{
    uint32_t words = 0;
    uint32_t arguments = all ? 2 : functions[record->function - 1].arguments;
    if (all)
        value[words++] = record->function;
    for (uint32_t i = 0; i < arguments; i++)
        value[words++] = record->arguments[i];
    value[words++] = record->environment;
    return words;
}

static void print_cost(const struct record_header *header, uint32_t function)
{
    uint64_t timed = header->timed_calls[function], ticks = header->last_ticks - header->first_ticks;
    if (timed == 0 || ticks == 0)
        return;
    double mean = (double)(header->timed_ticks[function] - header->clock_ticks[function]) / (double)timed;
    double ns = (double)(header->last_ns - header->first_ns) / (double)ticks;
    printf(" cost_ns=%.1f", mean * ns);
}

/* function < 0: all of them. */
static void replay(const struct record_header *header, const struct record *records, uint64_t count, int function,
                   uint64_t most)
{
    static const uint8_t opaque[PREDICT_WORDS];
    uint8_t kinds[PREDICT_WORDS] = {PREDICT_OPAQUE};
    struct predictor *predictors[ORDERS];
    uint32_t words = 4;
    if (function >= 0) {
        words = functions[function].arguments + 1;
        memset(kinds, functions[function].kind, words - 1);
    }
    for (uint32_t i = 0; i < ORDERS; i++) {
        predictors[i] = zeroed(sizeof *predictors[i]);
        predictor_start(predictors[i], words, function >= 0 ? kinds : opaque, i + 1);
    }
    for (uint64_t i = 0; i < count && predictors[0]->seen < most; i++) {
        uint64_t value[PREDICT_WORDS];
        if (function >= 0 && records[i].function != (uint32_t)function + 1)
            continue;
        value_of(&records[i], function < 0, value);
        for (uint32_t order = 0; order < ORDERS; order++)
            predictor_learn(predictors[order], value);
    }
    const struct predictor *usual = predictors[DEFAULT_ORDER - 1];
    if (usual->seen > 0) {
        uint64_t calls = 0;
        for (int i = 0; i < FUNCTION_COUNT; i++)
            calls += function < 0 || i == function ? header->calls[i] : 0;
        printf("process=%u thread=%u function=%s calls=%llu replayed=%llu last=%llu stride=%llu", header->process,
               header->thread, function >= 0 ? functions[function].name : "all", (unsigned long long)calls,
               (unsigned long long)usual->seen, (unsigned long long)usual->right[METHOD_LAST],
               (unsigned long long)usual->right[METHOD_STRIDE]);
        for (uint32_t i = 0; i < ORDERS; i++)
            printf(" order%u=%llu", i + 1, (unsigned long long)predictors[i]->right[METHOD_CONTEXT]);
        printf(" best=%llu", (unsigned long long)usual->right_best);
        if (function >= 0)
            print_cost(header, (uint32_t)function);
        putchar('\n');
    }
    for (uint32_t i = 0; i < ORDERS; i++)
        munmap(predictors[i], sizeof *predictors[i]);
}

static bool replay_file(const char *path, uint64_t most)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0 || status.st_size < RECORD_HEADER) {
        fprintf(stderr, "predict_replay: %s cannot be read\n", path);
        return false;
    }
    const char *content = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    const struct record_header *header = (const void *)content;
    if (content == MAP_FAILED || memcmp(header->magic, RECORD_MAGIC, sizeof header->magic) != 0) {
        fprintf(stderr, "predict_replay: %s is no log of arguments\n", path);
        return false;
    }
    const struct record *records = (const void *)(content + RECORD_HEADER);
    uint64_t room = ((uint64_t)status.st_size - RECORD_HEADER) / sizeof *records, count = 0;
    while (count < room && records[count].function != 0 && records[count].function <= FUNCTION_COUNT)
        count++;
    for (int function = -1; function < FUNCTION_COUNT; function++)
        replay(header, records, count, function, most);
    munmap((void *)(uintptr_t)content, (size_t)status.st_size);
    return true;
}

int main(int argc, char **argv)
{
    uint64_t most = UINT64_MAX;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--most") == 0) {
        most = strtoull(argv[2], NULL, 10);
        first = 3;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: predict_replay [--most CALLS] FILE...\n");
        return 2;
    }
    bool fine = true;
    for (int i = first; i < argc; i++)
        fine &= replay_file(argv[i], most);
    return fine ? 0 : 1;
}
