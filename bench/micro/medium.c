/* SPDX-License-Identifier: MIT
 *
 * Why: between the small classes and whole mappings lie buffers of 2 to 120 KiB, where many allocators leave their fast
 * path.  The same loop as `random`; the first bytes of each block are written, not all of it, so that the allocator
 * and not memset is timed.
 */
#include "slots_main.h"

int main(int argc, char **argv)
{
    const struct slots_params defaults = {
        .threads = 1, .min = 2048, .max = 120 * 1024, .slots = 100, .touch = 64, .ops = 3000000};
    return slots_main("medium", defaults, argc, argv);
}
