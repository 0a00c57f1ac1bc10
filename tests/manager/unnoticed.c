/* SPDX-License-Identifier: MIT
 *
 * A program that has a manager must not notice it.  To the C library it is still single-threaded, so that shared_ptr
 * and stdio take their ways without locks; when it forks it has one thread; every signal reaches the program's own
 * thread; its file descriptor table is not shared, and it has no open file the program did not open; and a program that
 * does nothing has a manager that does nothing: its count of context switches stands still.
 */
#include "watch.h"
#include <pthread.h>
#if defined(__GLIBC__)
#include <sys/single_threaded.h>
#endif

static void *thread_main(void *argument)
{
    return argument;
}

/* Private to glibc: set in every FILE once a second thread was started. */
#define NEEDS_LOCK 128

static void single_threaded(uint64_t seed)
{
#if defined(__GLIBC__)
    struct rng rng = {seed};
    if (!__libc_single_threaded)
        SKIP("the C library does not count threads");
    manager_start(&rng);
    CHECK(__libc_single_threaded);
    CHECK((stdout->_flags2 & NEEDS_LOCK) == 0);
    FILE *file = fopen("/dev/null", "w");
    CHECK(file != NULL && (file->_flags2 & NEEDS_LOCK) == 0);
    fclose(file);
    /* The same two are changed by a thread the C library knows of: they say what we take them to say. */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, thread_main, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(!__libc_single_threaded);
    CHECK((stdout->_flags2 & NEEDS_LOCK) != 0);
#else
    (void)seed;
    SKIP("only glibc tells");
#endif
}

static volatile pid_t handled_by;

static void note_thread(int signal_number)
{
    (void)signal_number;
    handled_by = (pid_t)syscall(SYS_gettid);
}

static void signals(uint64_t seed)
{
    struct rng rng = {seed};
    pid_t manager = manager_start(&rng);
    char text[4096];
    CHECK(task_read(getpid(), manager, "status", text, sizeof text) > 0);
    const char *row = strstr(text, "SigBlk:");
    /* All but SIGKILL (9) and SIGSTOP (19), which nobody can block, and 33, by which libraries reach all threads. */
    CHECK(row != NULL && strtoull(row + 7, NULL, 16) == ~(1ull << 8 | 1ull << 18 | 1ull << 32));
    signal(SIGUSR1, note_thread);
    for (int i = 0; i < 200; i++) {
        handled_by = 0;
        CHECK(kill(getpid(), SIGUSR1) == 0);
        while (handled_by == 0)
            sleep_us(100);
        CHECK(handled_by == getpid());
        hoard_grow(&rng, 64 * KIB);
    }
}

static void files(uint64_t seed)
{
    struct rng rng = {seed};
    int before = dup(0), pipes[2];
    close(before);
    CHECK(pipe(pipes) == 0);
    pid_t manager = manager_start(&rng);
    int after = dup(0);
    CHECK_MSG(after == before + 2, "the lowest free descriptor was %d and is %d", before, after);
    close(after);
    /* Closing the last descriptor is seen at the pipe's other end: nobody else holds one. */
    close(pipes[1]);
    char byte;
    CHECK(read(pipes[0], &byte, 1) == 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/fd/%d", (int)manager, pipes[0]);
    CHECK(access(path, F_OK) != 0);
}

static volatile int thread_ends;

static void *thread_waits(void *argument)
{
    while (!thread_ends)
        sleep_us(1000);
    return argument;
}

/* How many threads a process has right after a fork is what Python asks, to warn a program that has several. */
static int tasks_after_fork(void)
{
    pid_t tasks[TASKS_MOST], child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(0);
    int count = tasks_of(getpid(), tasks);
    CHECK(waitpid(child, NULL, 0) == child);
    return count;
}

static void leaves_for_forks(struct rng *rng, int rounds)
{
    int left = 0;
    for (int i = 0; i < rounds; i++) {
        CHECK_MSG(manager_awaited(rng) != 0, "it does not come back");
        if (i % 2 == 0)
            hoard_drop(0); /* it has something to do */
        left += tasks_after_fork() == 1;
    }
    /* The program does not wait long for a manager that gets no processor: on a busy machine it may still be there. */
    CHECK_MSG(left > 0, "the program has two threads after each fork");
}

static void forks(uint64_t seed)
{
    struct rng rng = {seed};
    manager_start(&rng);
    const int rounds = 10;
    int stayed = 0;
    leaves_for_forks(&rng, rounds);
    /* A program of several threads keeps it; but for one that was asked to leave before. */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, thread_waits, NULL) == 0);
    for (int i = 0; i < rounds; i++) {
        pid_t manager = manager_awaited(&rng);
        CHECK_MSG(manager != 0, "it does not come back");
        stayed += tasks_after_fork() == 3 && manager_of(getpid()) == manager;
    }
    CHECK_MSG(stayed >= rounds - 1, "it left %d times", rounds - stayed);
    thread_ends = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    leaves_for_forks(&rng, rounds); /* it has one again */
    hoard_drop(0);
}

static unsigned idle_ms;

static void idle(uint64_t seed)
{
    struct rng rng = {seed};
    pid_t manager = manager_start(&rng);
    hoard_grow(&rng, 40 * MIB);
    hoard_drop(7);
    unsigned long long now = task_settled(getpid(), manager);
    sleep_us(idle_ms * 1000);
    unsigned long long last = switches_of(getpid(), manager);
    CHECK_MSG(last == now, "%llu context switches of an idle program's manager", last - now);
    /* And it still hears. */
    hoard_grow(&rng, 100 * MIB);
    for (int i = 0; i < 500 && switches_of(getpid(), manager) == last; i++)
        sleep_us(10000);
    CHECK(switches_of(getpid(), manager) != last);
    hoard_check();
}

int main(int argc, char **argv)
{
    test_begin(120);
    idle_ms = (unsigned)test_option(argc, argv, "--ms", 10000);
    static const struct manager_case cases[] = {
        {"single_threaded", single_threaded},
        {"signals", signals},
        {"files", files},
        {"forks", forks},
        {"idle", idle},
    };
    return cases_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
