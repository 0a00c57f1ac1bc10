/* SPDX-License-Identifier: MIT
 *
 * A signal storm with handlers that malloc, verify and free.  Signals land everywhere: inside sections (which abort),
 * inside slow paths with a lock held, inside other handlers.  POSIX does not let handlers allocate and glibc deadlocks;
 * the library promises it, so this runs only under it.  Sources: a cpu-time interval timer per process, a POSIX timer
 * per worker with a period of 100 us, and a thread that aims pthread_kill at random workers.
 */
#include "stress/worker.h"
#include <sys/time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static uint64_t handled;
static uint64_t seed;

static void handler(int number)
{
    int saved = errno;
    uint64_t turn = __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
    struct rng rng = {seed + turn * 77 + (uint64_t)number};
    for (int i = 0; i < 3; i++)
        worker_step(&rng);
    if (turn % 64 == 0) {
        char *block = realloc(calloc(1, 100), 3000); /* the slow ways too */
        CHECK(block != NULL && block[0] == 0 && block[99] == 0);
        free(block);
    }
    errno = saved;
}

static timer_t start_timer(pid_t tid, int signal_number, long period_ns)
{
    timer_t timer;
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal_number;
    event.sigev_notify_thread_id = tid;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec period = {{0, period_ns}, {0, period_ns}};
    CHECK(timer_settime(timer, 0, &period, NULL) == 0);
    return timer;
}

int main(int argc, char **argv)
{
    test_begin(300);
    if (!test_is_sutler())
        SKIP("only the library promises malloc in signal handlers");
    seed = test_seed_from(NULL);
    uint64_t milliseconds = test_option(argc, argv, "--ms", 4000);
    size_t count = test_option(argc, argv, "--threads", 6);
    shadow_create();
    static const int numbers[] = {SIGUSR1, SIGUSR2, SIGPROF, SIGVTALRM};
    for (size_t i = 0; i < 4; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = handler;
        action.sa_flags = SA_RESTART | (i == 1 ? SA_NODEFER : 0);
        sigfillset(&action.sa_mask);
        if (i == 1)
            sigemptyset(&action.sa_mask); /* this one may interrupt itself and the others */
        CHECK(sigaction(numbers[i], &action, NULL) == 0);
    }
    struct rng rng = {seed};
    workers_start(count, seed);
    timer_t timers[WORKER_MOST];
    for (size_t i = 0; i < count; i++) {
        while (__atomic_load_n(&workers[i].tid, __ATOMIC_RELAXED) == 0)
            sleep_us(100);
        timers[i] = start_timer(workers[i].tid, i % 2 ? SIGUSR2 : SIGUSR1, 300000 + (long)i * 7919);
    }
    struct itimerval often = {{0, 997}, {0, 997}};
    CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
    uint64_t end = now_ms() + milliseconds;
    while (now_ms() < end) {
        pthread_kill(workers[rng_below(&rng, count)].thread, rng_next(&rng) & 1 ? SIGUSR1 : SIGVTALRM);
        sleep_us(50 + (unsigned)rng_below(&rng, 400));
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_PROF, &never, NULL) == 0);
    for (size_t i = 0; i < count; i++)
        timer_delete(timers[i]);
    workers_finish();
    test_say("%llu signals handled\n", (unsigned long long)handled);
    CHECK_MSG(handled >= 100, "only %llu signals arrived: no storm", (unsigned long long)handled);
    return 0;
}
