/* SPDX-License-Identifier: MIT
 *
 * A program that has a manager must not notice it.  To the C library it is still single-threaded, so that shared_ptr and
 * stdio take their ways without locks; every signal reaches the program's own thread; its file descriptor table is not
 * shared, and it has no open file the program did not open; and a program that does nothing has a manager that does
 * nothing: its count of context switches stands still.
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
    /* All but SIGKILL (9) and SIGSTOP (19), which nobody can block. */
    CHECK(row != NULL && strtoull(row + 7, NULL, 16) == ~(1ull << 8 | 1ull << 18));
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

/* The sum of both kinds of context switches. */
static unsigned long long switches_of(pid_t task)
{
    char text[4096];
    CHECK(task_read(getpid(), task, "status", text, sizeof text) > 0);
    unsigned long long sum = 0;
    const char *row = text;
    for (int i = 0; i < 2; i++) {
        row = strstr(row, "ctxt_switches:");
        CHECK(row != NULL);
        row += strlen("ctxt_switches:");
        sum += strtoull(row, NULL, 10);
    }
    return sum;
}

static unsigned idle_ms;

static void idle(uint64_t seed)
{
    struct rng rng = {seed};
    pid_t manager = manager_start(&rng);
    hoard_grow(&rng, 40 * MIB);
    hoard_drop(7);
    /* It has settled when a second goes by without a switch; ten seconds are plenty for its clocks to run out. */
    unsigned long long last = 0, now = switches_of(manager);
    for (int i = 0; i < 20 && now != last; i++) {
        sleep_us(1000000);
        last = now;
        now = switches_of(manager);
    }
    sleep_us(idle_ms * 1000);
    last = switches_of(manager);
    CHECK_MSG(last == now, "%llu context switches of an idle program's manager", last - now);
    /* And it still hears. */
    hoard_grow(&rng, 100 * MIB);
    for (int i = 0; i < 500 && switches_of(manager) == last; i++)
        sleep_us(10000);
    CHECK(switches_of(manager) != last);
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
        {"idle", idle},
    };
    return cases_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
