/* SPDX-License-Identifier: MIT
 *
 * Everything at once: workers, migration every half millisecond, signals whose handlers allocate, forks whose children
 * check the heap, threads that come and go, purges.  Each of these has a test of its own; this one looks for what only
 * their meetings break.
 */
#include "stress/worker.h"
#include <sys/wait.h>

static uint64_t handled;
static uint64_t seed;

static void handler(int number)
{
    int saved = errno;
    struct rng rng = {seed + __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED) * 31 + (uint64_t)number};
    worker_step(&rng);
    errno = saved;
}

/* The child has one thread and a copy of a heap that was in full swing. */
static void child_main(void)
{
    signal(SIGUSR1, SIG_IGN);
    alarm(60);
    struct rng rng = {seed ^ (uint64_t)getpid()};
    for (size_t i = 0; i < WORKER_TABLE; i++) {
        struct worker_block *block = worker_table[i];
        if (block != NULL) {
            pattern_verify(block->content, block->size, block->key);
            if (i % 2 == 0) {
                shadow_release(block, block->usable);
                free(block);
                worker_table[i] = NULL;
            }
        }
    }
    for (int i = 0; i < 500; i++)
        worker_step(&rng);
    _exit(0);
}

static void fork_once(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        child_main();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MSG(status == 0, "a fork child ended with status 0x%x", (unsigned)status);
}

static void *visitor(void *argument)
{
    struct rng rng = {seed + (uintptr_t)argument};
    for (int i = 0; i < 100; i++)
        worker_step(&rng);
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(300);
    if (!test_is_sutler())
        SKIP("only the library promises malloc in signal handlers");
    seed = test_seed_from(NULL);
    uint64_t milliseconds = test_option(argc, argv, "--ms", 5000);
    int cpus[64];
    int cpu_count = proc_cpus(cpus, 64);
    shadow_create();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    struct rng rng = {seed};
    workers_start(6, seed);
    for (size_t i = 0; i < worker_count; i++) {
        while (__atomic_load_n(&workers[i].tid, __ATOMIC_RELAXED) == 0)
            sleep_us(100);
    }
    uint64_t end = now_ms() + milliseconds;
    for (uint64_t turn = 0; now_ms() < end; turn++) {
        struct worker *worker = &workers[rng_below(&rng, worker_count)];
        proc_pin_tid(worker->tid, cpus[rng_below(&rng, (size_t)cpu_count)]);
        pthread_kill(workers[rng_below(&rng, worker_count)].thread, SIGUSR1);
        if (turn % 64 == 0)
            fork_once();
        if (turn % 16 == 0) {
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, visitor, (void *)(uintptr_t)turn) == 0);
            CHECK(pthread_join(thread, NULL) == 0);
        }
        if (turn % 128 == 0)
            malloc_trim(0);
        sleep_us(500);
    }
    workers_finish();
    test_say("%llu signals handled\n", (unsigned long long)handled);
    return 0;
}
