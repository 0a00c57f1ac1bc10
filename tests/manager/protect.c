/* SPDX-License-Identifier: MIT
 *
 * A program may forbid access to whole pages of its blocks (guard pages of stacks it allocates; the example of
 * mprotect(2) does).  The manager makes pages ready just ahead of a program that grows, and must touch none that has
 * been handed out.
 */
#include "watch.h"
#include <sys/mman.h>

#define PAGE 4096

int main(int argc, char **argv)
{
    test_begin(100);
    size_t rounds = test_option(argc, argv, "--rounds", 3), count = test_option(argc, argv, "--blocks", 40000);
    struct rng rng = {test_seed_from(NULL)};
    manager_start(&rng);
    char **block = calloc(count, sizeof *block);
    CHECK(block != NULL);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            CHECK(posix_memalign((void **)&block[i], PAGE, PAGE) == 0);
            if (mprotect(block[i], PAGE, round % 2 == 0 ? PROT_READ : PROT_NONE) != 0) /* neighbours merge: few mappings */
                SKIP("mprotect: errno %d", errno);
        }
        for (size_t i = 0; i < count; i++) {
            CHECK(mprotect(block[i], PAGE, PROT_READ | PROT_WRITE) == 0);
            free(block[i]);
        }
    }
    return 0;
}
