/* SPDX-License-Identifier: MIT
 *
 * The ways a process or a thread can end while an engine's second thread is there: none may hang, and none may change
 * the exit status.  Each way runs in a child of its own.
 */
#include "engine.h"

#include <pthread.h>
#include <sys/wait.h>

static void churn(size_t steps)
{
    struct rng rng = {steps + 1};
    void *slots[64] = {NULL};
    for (size_t i = 0; i < steps; i++) {
        size_t slot = rng_below(&rng, 64);
        free(slots[slot]);
        slots[slot] = malloc(rng_below(&rng, 2000));
        CHECK(slots[slot] != NULL);
    }
    for (size_t i = 0; i < 64; i++)
        free(slots[i]);
}

static void *churn_once(void *unused)
{
    churn(3000);
    return unused;
}

static void *churn_for_ever(void *unused)
{
    for (;;)
        churn(1000);
    return unused;
}

static void start(void *(*function)(void *), pthread_t *thread)
{
    pthread_t ignored;
    CHECK(pthread_create(thread != NULL ? thread : &ignored, NULL, function, NULL) == 0);
}

static void by_return(void)
{
    churn(3000);
    exit(3);
}

static void by_exit_under_churn(void)
{
    for (int i = 0; i < 3; i++)
        start(churn_for_ever, NULL);
    churn(3000);
    exit(3);
}

static void exit_handler(void)
{
    churn(1000);
    _exit(3);
}

static void by_exit_with_allocating_handler(void)
{
    CHECK(atexit(exit_handler) == 0);
    churn(3000);
    exit(1);
}

/* The C library ends the process with its last thread: the engine's must not count. */
static void by_pthread_exit_of_main(void)
{
    CHECK(atexit(exit_handler) == 0);
    churn(3000);
    start(churn_once, NULL);
    pthread_exit(NULL);
}

static void by_signal(void)
{
    start(churn_for_ever, NULL);
    churn(3000);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
}

/* malloc and free are no cancellation points, whatever they wait on: a thread is cancelled between them, or not at
 * all. */
static void *cancelled(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    for (;;) {
        churn(50);
        pthread_testcancel();
    }
    return unused;
}

static void with_cancellation(void)
{
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        void *result;
        start(cancelled, &thread);
        churn(300);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    churn(1000);
    exit(3);
}

/* The second thread blocks all signals: this one's handler must run here. */
static volatile sig_atomic_t handled;
static pthread_t main_thread;

static void handler(int number)
{
    (void)number;
    handled = pthread_equal(pthread_self(), main_thread) ? 1 : 2;
}

static void with_process_signal(void)
{
    main_thread = pthread_self();
    churn(3000);
    CHECK(signal(SIGUSR1, handler) != SIG_ERR);
    for (int i = 0; i < 200; i++) {
        handled = 0;
        CHECK(kill(getpid(), SIGUSR1) == 0);
        while (handled == 0)
            churn(1);
        CHECK(handled == 1);
    }
    exit(3);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {{"return", by_return},
                {"exit under churn", by_exit_under_churn},
                {"exit with an allocating handler", by_exit_with_allocating_handler},
                {"pthread_exit of main", by_pthread_exit_of_main},
                {"signal", by_signal},
                {"cancellation", with_cancellation},
                {"process-wide signals", with_process_signal}};
    engine_begin(300);
    churn(3000);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            engine_watchdog(60);
            ways[i].run();
            _exit(2);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        bool expected = ways[i].run == by_signal ? WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM
                                                 : WIFEXITED(status) && WEXITSTATUS(status) == 3;
        CHECK_MSG(expected, "%s: wait status 0x%x", ways[i].name, (unsigned)status);
    }
    return 0;
}
