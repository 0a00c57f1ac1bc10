/* SPDX-License-Identifier: MIT
 *
 * Why: `random` and `medium` are one program at two scales; each is its few default figures and this.
 */
#ifndef BENCH_SLOTS_MAIN_H
#define BENCH_SLOTS_MAIN_H

#include <stdint.h>

struct slots_params {
    uint64_t threads, min, max, slots, touch, ops;
};

int slots_main(const char *name, struct slots_params defaults, int argc, char **argv);

#endif
