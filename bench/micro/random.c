/* SPDX-License-Identifier: MIT
 *
 * Why: sizes from 16 bytes to 1 KiB in random order with random lifetimes, the ordinary life of a C program's heap.  An
 * operation is one free and one malloc (support/slots.h).
 */
#include "slots_main.h"

int main(int argc, char **argv)
{
    const struct slots_params defaults = {
        .threads = 1, .min = 16, .max = 1024, .slots = 1000, .touch = 8, .ops = 20000000};
    return slots_main("random", defaults, argc, argv);
}
