/* SPDX-License-Identifier: MIT
 *
 * What the predictor's tests share: proof that answers computed ahead are what is tested, since a test that passes over
 * plain libm proves nothing; libm's own functions, found past the library before them; the number of threads.
 */
#ifndef TESTS_PREDICT_PREDICTED_H
#define TESTS_PREDICT_PREDICTED_H

#include "support/check.h" /* first: it asks for all that the system declares */

#include "predict.h"
#include "support/rng.h"

#include <dlfcn.h>
#include <math.h>
#include <sys/stat.h>

extern bool sutler_predict_count(const char *name, struct predict_counts *counts) __attribute__((weak));
extern bool sutler_predict_settle(const char *name, unsigned ms) __attribute__((weak));

static inline struct predict_counts counts_of(const char *name)
{
    struct predict_counts counts;
    CHECK_MSG(sutler_predict_count != NULL, "the predictor is not preloaded");
    CHECK(sutler_predict_count(name, &counts));
    return counts;
}

/* libm's own function of this name. */
static inline void *libms(const char *name)
{
    void *libm = dlopen("libm.so.6", RTLD_NOW);
    CHECK(libm != NULL);
    void *found = dlsym(libm, name), *here = dlsym(RTLD_DEFAULT, name);
    CHECK_MSG(found != NULL && found != here, "%s is not wrapped", name);
    return found;
}

static inline uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline unsigned threads_now(void)
{
    struct stat status;
    CHECK(stat("/proc/self/task", &status) == 0);
    return (unsigned)status.st_nlink - 2;
}

/* A cycle of arguments with libm's answers to them; a call of sine() checks the answer. */
enum { CYCLE = 24 };

struct cycle {
    double argument[CYCLE];
    uint64_t answer[CYCLE];
    size_t next;
};

static inline void cycle_begin(struct cycle *cycle, uint64_t seed)
{
    void *found = libms("sin");
    double (*plain)(double);
    memcpy(&plain, &found, sizeof plain);
    struct rng rng = {seed};
    cycle->next = 0;
    for (size_t i = 0; i < CYCLE; i++) {
        cycle->argument[i] = (double)(rng_next(&rng) >> 40) * 0x1p-10;
        cycle->answer[i] = bits_of(plain(cycle->argument[i]));
    }
}

static inline void cycle_call(struct cycle *cycle)
{
    size_t i = cycle->next;
    cycle->next = (i + 1) % CYCLE;
    uint64_t answer = bits_of(sin(cycle->argument[i]));
    CHECK_MSG(answer == cycle->answer[i], "sin(%a) was %#llx, is %#llx", cycle->argument[i],
              (unsigned long long)cycle->answer[i], (unsigned long long)answer);
}

static inline void cycle_calls(struct cycle *cycle, size_t calls)
{
    for (size_t i = 0; i < calls; i++)
        cycle_call(cycle);
}

/* Calls until answers that were computed ahead have been used. */
static inline void cycle_until_hit(struct cycle *cycle)
{
    uint64_t before = counts_of("sin").hits;
    for (int round = 0; round < 200 && counts_of("sin").hits == before; round++) {
        cycle_calls(cycle, 100);
        if (!sutler_predict_settle("sin", 1000))
            usleep(1000); /* another thread is starting the second one */
    }
    CHECK_MSG(counts_of("sin").hits > before, "no answer was computed ahead");
}

#endif
