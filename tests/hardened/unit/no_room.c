/* SPDX-License-Identifier: MIT
 *
 * All address space is used up by blocks, which are freed then: there is no memory left to write down in which blocks
 * are kept for a sweep.  With SUTLER_SWEEP=auto they must be there again all the same.
 *
 * `handler`: signal handlers free meanwhile, and the signal comes again before long; the program must get on.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

#define LIMIT_BYTES ((rlim_t)200 << 20)
#define BLOCK_BYTES 1000

struct block {
    struct block *before;
};

enum { IN_HANDLERS = 20000, EACH = 3 };
static void *for_handlers[IN_HANDLERS];
static volatile sig_atomic_t freed;

static void handler(int number)
{
    (void)number;
    for (int i = 0; i < EACH && freed < IN_HANDLERS; i++)
        free(for_handlers[freed++]);
}

static void have_handlers_free(void)
{
    const struct itimerval every = {{0, 1000}, {0, 1000}};
    for (int i = 0; i < IN_HANDLERS; i++)
        for_handlers[i] = malloc(BLOCK_BYTES);
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &every, NULL);
}

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

int main(int argc, char **argv)
{
    const struct rlimit limit = {LIMIT_BYTES, LIMIT_BYTES};
    setrlimit(RLIMIT_AS, &limit);
    if (argc > 1 && strcmp(argv[1], "handler") == 0) {
        have_handlers_free();
        printf("%zu blocks", fill_and_free());
        printf(", %d freed in handlers\n", (int)freed);
        return freed > 0 ? 0 : 1;
    }
    const size_t first = fill_and_free(), second = fill_and_free();
    printf("%zu blocks, then %zu\n", first, second);
    return first > 10000 && second > first / 10 * 9 ? 0 : 1;
}
