/* SPDX-License-Identifier: MIT
 *
 * Why: the child of a vfork, or of a clone that is one with a stack of its own, runs in its parent's memory with its
 * parent's thread-local variables, but the system neither restarts its restartable sections nor tells it where it runs.
 * While it allocates, other threads of the program do, on the processor it believes to be its own.  Every allocator
 * without such sections survives that.
 */
#include "support/pattern.h"
#include "support/rng.h"
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#define THREADS 3
#define SLOTS 400

static _Atomic bool done;

static size_t some_size(struct rng *rng)
{
    uint64_t kind = rng_below(rng, 100);
    return kind < 95 ? 1 + rng_below(rng, 300) : kind < 99 ? 1 + rng_below(rng, 5000) : 1 + rng_below(rng, 300000);
}

struct slots {
    char *block[SLOTS];
    size_t bytes[SLOTS];
};

static void churn(struct slots *slots, struct rng *rng, size_t times, uint64_t mark)
{
    while (times-- > 0) {
        size_t i = rng_below(rng, SLOTS);
        if (slots->block[i] != NULL) {
            pattern_verify(slots->block[i], slots->bytes[i], mark + i);
            free(slots->block[i]);
        }
        slots->bytes[i] = some_size(rng);
        CHECK((slots->block[i] = malloc(slots->bytes[i])) != NULL);
        pattern_fill(slots->block[i], slots->bytes[i], mark + i);
    }
}

static void clear(struct slots *slots, uint64_t mark)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots->block[i] != NULL) {
            pattern_verify(slots->block[i], slots->bytes[i], mark + i);
            free(slots->block[i]);
        }
        slots->block[i] = NULL;
    }
}

static void *neighbour(void *seed)
{
    static __thread struct slots slots;
    struct rng rng = {(uint64_t)(uintptr_t)seed};
    while (!done)
        churn(&slots, &rng, 1000, (uint64_t)(uintptr_t)seed << 32);
    clear(&slots, (uint64_t)(uintptr_t)seed << 32);
    return NULL;
}

static struct slots slots;
static struct rng rng;

static int in_child(void *unused)
{
    (void)unused;
    churn(&slots, &rng, 3000, 1); /* its parent's blocks, and leaves its own to the parent */
    return 7;
}

static pid_t begin_child(bool by_clone)
{
    static _Alignas(16) char stack[1 << 16];
    pid_t child = by_clone ? clone(in_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL) : vfork();
    if (child == 0)
        _exit(in_child(NULL));
    return child;
}

int main(int argc, char **argv)
{
    test_begin(120);
    uint64_t rounds = test_option(argc, argv, "--rounds", 30), seed = test_seed_from(NULL);
    rng = (struct rng){seed};
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, neighbour, (void *)(seed % 1000 + i + 1)) == 0);
    for (uint64_t round = 0; round < rounds; round++) {
        churn(&slots, &rng, 1000, 1);
        pid_t child = begin_child(round % 2 != 0);
        CHECK(child >= 0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
        clear(&slots, 1);
    }
    done = true;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    return 0;
}
