/* SPDX-License-Identifier: MIT
 *
 * All address space is used up by blocks, which are freed then: there is no memory left to write down in which blocks are kept
 * for a sweep.  With SUTLER_SWEEP=auto they must be there again all the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define LIMIT_BYTES ((rlim_t)200 << 20)
#define BLOCK_BYTES 1000

struct block {
    struct block *before;
};

static size_t fill_and_free(void)
{
    struct block *last = NULL, *b;
    size_t count = 0;
    for (; (b = malloc(BLOCK_BYTES)) != NULL; count++) {
        b->before = last;
        last = b;
    }
    while (last != NULL) {
        b = last->before;
        free(last);
        last = b;
    }
    return count;
}

int main(void)
{
    const struct rlimit limit = {LIMIT_BYTES, LIMIT_BYTES};
    setrlimit(RLIMIT_AS, &limit);
    const size_t first = fill_and_free(), second = fill_and_free();
    printf("%zu blocks, then %zu\n", first, second);
    return first > 10000 && second > first / 10 * 9 ? 0 : 1;
}
