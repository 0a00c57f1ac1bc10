/* SPDX-License-Identifier: MIT
 *
 * Why: the predictor under programs that know nothing of it: libsutler-predict.so, preloaded, stands before libm.  A
 * function that has been found too cheap (most are, within their first 64 calls) costs a load, a branch and a jump more
 * than libm's own from then on.
 *
 * SUTLER_PREDICT=auto|off|force and the options of predict.h set it up; SUTLER_PREDICT_REPORT=1 prints a line a
 * function at the end.  Left out: what libm calls within itself (a complex exponential's sine), the vector forms, and
 * the SVID error handling of programs linked before glibc 2.27 (they get today's exp, log and pow).
 */
#include "wrapped.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct predict_function functions[FUNCTION_COUNT];
static uint32_t ready; /* the constructor is through; before it, everything goes to the original */

static inline bool is_off(unsigned function)
{
    return !__atomic_load_n(&ready, __ATOMIC_RELAXED) || __atomic_load_n(&functions[function].x_off, __ATOMIC_RELAXED);
}

/* A function that returns its result.  `parameters` and `arguments` with their parentheses; `keep` makes the key of the
 * arguments, `kept` the arguments of a key's words. */
#define WRAP(name, type, parameters, arguments, keep, kept)                                                            \
    static __attribute__((noinline)) type ask_##name parameters                                                        \
    {                                                                                                                  \
        struct predict_call call;                                                                                      \
        keep;                                                                                                          \
        if (predict_ask(&functions[FUNCTION_##name], &call))                                                           \
            return type##_of_bits(call.result[0]);                                                                     \
        type result = next_##name arguments;                                                                           \
        call.result[0] = bits_of_##type(result);                                                                       \
        predict_done(&functions[FUNCTION_##name], &call);                                                              \
        return result;                                                                                                 \
    }                                                                                                                  \
    static bool compute_##name(void *unused, const uint64_t *word, uint64_t *result)                                   \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        *result = bits_of_##type(next_##name kept);                                                                    \
        return true;                                                                                                   \
    }                                                                                                                  \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        return LIKELY(is_off(FUNCTION_##name)) ? next_##name arguments : ask_##name arguments;                         \
    }
#define UNARY(name, type)                                                                                              \
    WRAP(name, type, (type x), (x), call.key[0] = bits_of_##type(x), (type##_of_bits(word[0])))
#define BINARY(name, type)                                                                                             \
    WRAP(name, type, (type x, type y), (x, y), (call.key[0] = bits_of_##type(x), call.key[1] = bits_of_##type(y)),     \
         (type##_of_bits(word[0]), type##_of_bits(word[1])))
#define PAIR(name, type)                                                                                               \
    static __attribute__((noinline)) void ask_##name(type x, type *sine, type *cosine)                                 \
    {                                                                                                                  \
        struct predict_call call;                                                                                      \
        call.key[0] = bits_of_##type(x);                                                                               \
        if (predict_ask(&functions[FUNCTION_##name], &call)) {                                                         \
            *sine = type##_of_bits(call.result[0]);                                                                    \
            *cosine = type##_of_bits(call.result[1]);                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        next_##name(x, sine, cosine);                                                                                  \
        call.result[0] = bits_of_##type(*sine);                                                                        \
        call.result[1] = bits_of_##type(*cosine);                                                                      \
        predict_done(&functions[FUNCTION_##name], &call);                                                              \
    }                                                                                                                  \
    static bool compute_##name(void *unused, const uint64_t *arguments, uint64_t *result)                              \
    {                                                                                                                  \
        type sine, cosine;                                                                                             \
        (void)unused;                                                                                                  \
        next_##name(type##_of_bits(*arguments), &sine, &cosine);                                                       \
        result[0] = bits_of_##type(sine);                                                                              \
        result[1] = bits_of_##type(cosine);                                                                            \
        return true;                                                                                                   \
    }                                                                                                                  \
    EXPORT void name(type x, type *sine, type *cosine)                                                                 \
    {                                                                                                                  \
        if (LIKELY(is_off(FUNCTION_##name)))                                                                           \
            next_##name(x, sine, cosine);                                                                              \
        else                                                                                                           \
            ask_##name(x, sine, cosine);                                                                               \
    }
#include "functions.def"
#undef WRAP
#undef UNARY
#undef BINARY
#undef PAIR

static const struct {
    const char *name;
    predict_compute *compute;
    size_t arguments, results;
    enum predict_kind kind;
} rows[FUNCTION_COUNT] = {
#define KIND_double PREDICT_DOUBLE
#define KIND_float  PREDICT_FLOAT
#define UNARY(name, type)  {#name, compute_##name, 1, 1, KIND_##type},
#define BINARY(name, type) {#name, compute_##name, 2, 1, KIND_##type},
#define PAIR(name, type)   {#name, compute_##name, 1, 2, KIND_##type},
#include "functions.def"
};

static struct predict_function *function_named(const char *name)
{
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &functions[i];
    }
    return NULL;
}

/* For tests, and for programs that want to know. */
EXPORT bool sutler_predict_count(const char *name, struct predict_counts *counts);
EXPORT bool sutler_predict_count(const char *name, struct predict_counts *counts)
{
    struct predict_function *function = function_named(name);
    if (function != NULL)
        predict_count(function, counts);
    return function != NULL;
}

EXPORT bool sutler_predict_settle(const char *name, unsigned ms);
EXPORT bool sutler_predict_settle(const char *name, unsigned ms)
{
    struct predict_function *function = function_named(name);
    return function != NULL && predict_settle(function, ms);
}

static __attribute__((constructor)) void prepare(void)
{
    struct predict_options options = predict_options_from_environment();
    find_originals();
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        const enum predict_kind kinds[] = {rows[i].kind, rows[i].kind};
        predict_open(&functions[i], rows[i].name, rows[i].compute, NULL, rows[i].arguments, rows[i].results, kinds,
                     &options);
    }
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
}

static __attribute__((destructor)) void report(void)
{
    if (secure_getenv("SUTLER_PREDICT_REPORT") == NULL)
        return;
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        struct predict_counts counts;
        char line[256];
        predict_count(&functions[i], &counts);
        if (counts.calls == 0)
            continue;
        int length = snprintf(line, sizeof line,
                              "sutler-predict: function=%s calls=%llu hits=%llu memo_hits=%llu late=%llu wrong=%llu "
                              "threads=%llu off=%d off_after_us=%llu\n",
                              rows[i].name, (unsigned long long)counts.calls, (unsigned long long)counts.hits,
                              (unsigned long long)counts.memo_hits, (unsigned long long)counts.late,
                              (unsigned long long)counts.wrong, (unsigned long long)counts.threads, counts.off,
                              (unsigned long long)counts.off_after_us);
        if (write(STDERR_FILENO, line, (size_t)length) != length)
            return;
    }
}
