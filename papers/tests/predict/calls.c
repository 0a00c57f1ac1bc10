/* SPDX-License-Identifier: MIT
 *
 * Calls of libm for the replay to be tested with: cycles with strays in them, steps, constants, special values, noise
 * that uses all rows of the matrix and more; from two threads.
 */
#include <math.h>

#include "support/check.h"
#include "support/rng.h"

#include <pthread.h>

static double noise(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

static void cycle(struct rng *rng, size_t calls, size_t period, size_t strays_percent)
{
    for (size_t i = 0; i < calls; i++) {
        double x = rng_below(rng, 100) < strays_percent ? noise(rng) : (double)(i % period) * 0.3;
        opaque_size((size_t)(sin(x) * 1000));
        opaque_size((size_t)(powf((float)x, 2.5f) * 0));
    }
}

static void *run(void *argument)
{
    struct rng rng = {(uintptr_t)argument};
    volatile double sink = 0;
    cycle(&rng, 1000, 7, 0);
    cycle(&rng, 1500, 40, 5);
    cycle(&rng, 1000, 3, 30);
    for (size_t i = 0; i < 1500; i++) { /* a word of few letters, with a grammar of its own */
        static const double letters[] = {0.0, -0.0, 1.5, 2.5, 1e300};
        sink += cos(letters[i % 11 < 4 ? i % 5 : i * i % 3]);
        sink += tan(letters[rng_below(&rng, 2)]);
    }
    for (size_t i = 0; i < 800; i++) {
        sink += expf((float)i * 0.125f) * 0.0f;
        sink += exp((double)i * 0.1);
        sink += pow(1.5, (double)(i % 30));
    }
    for (size_t i = 0; i < ((uintptr_t)argument == 1 ? 9000 : 1000); i++)
        sink += log(i % 3 == 0 ? 2.0 : noise(&rng));
    sink += sin((double)INFINITY) + sin(-0.0) + logf(-1.0f);
    return NULL;
}

int main(void)
{
    pthread_t other;
    CHECK(pthread_create(&other, NULL, run, (void *)2) == 0);
    run((void *)1);
    CHECK(pthread_join(other, NULL) == 0);
    return 0;
}
