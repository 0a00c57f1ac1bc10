/* SPDX-License-Identifier: MIT
 *
 * The manager stops where it stands: because the system gives it no processor, because a debugger holds it, for ever.  The
 * program goes on inline.  Only a tracer can stop one thread, so the test is one: a program grows, frees and forks, its
 * blocks' content checked; the tracer stops the manager at random moments, watches the program go on, and lets it go
 * again; or, at the end of every run, never again, and the program runs to its end beside it.
 *
 * What may make the program wait is a lock the manager holds at that moment: then the manager is let run for a fraction of a
 * millisecond at a time until it has let go.  For memory that must be rare (it works outside the locks); fork and
 * sutler_purge() wait for the end of one piece of work by design, and are not counted.  Where the manager never lets go the test says that it hangs.
 */
#include "watch.h"
#include <sys/mman.h>
#include <sys/ptrace.h>

enum doing { doing_memory, doing_wait };

/* What the program tells the tracer. */
static struct shared {
    volatile uint64_t progress;
    volatile int doing;
    volatile int stop; /* asked for by the tracer */
    volatile pid_t manager;
} *shared;

/* ---- the program ---- */

static void steps(struct rng *rng)
{
    for (int i = 0; i < 40; i++) {
        hoard_grow(rng, 128 * KIB);
        void *large = malloc(rng_size(rng, 22));
        CHECK(large != NULL);
        free(large);
        shared->progress++;
    }
    if (hoard_bytes > 70 * MIB) {
        hoard_drop(12 + rng_below(rng, 12));
        shared->progress++;
        shared->doing = doing_wait;
        sutler_purge(); /* so that growing needs new pages */
        shared->doing = doing_memory;
        shared->progress++;
    }
    if (rng_below(rng, 4) == 0)
        sleep_us((unsigned)rng_below(rng, 2000));
}

static void forks(struct rng *rng)
{
    shared->doing = doing_wait;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        test_watchdog(30);
        hoard_grow(rng, MIB);
        _exit(0);
    }
    shared->progress++;
    shared->doing = doing_memory;
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void program(uint64_t seed)
{
    struct rng rng = {seed};
    test_watchdog(100);
    shared->manager = manager_start(&rng);
    while (!shared->stop) {
        steps(&rng);
        if (rng_below(&rng, 3) == 0)
            forks(&rng);
    }
    hoard_check();
    hoard_drop(0);
    shared->progress++;
    exit(0);
}

/* ---- the tracer ---- */

static unsigned pauses, memory_waits, other_waits;

/* Waits for the manager to stop for us; false if the process has ended. */
static bool wait_stop(pid_t manager)
{
    for (;;) {
        int status;
        pid_t got = waitpid(manager, &status, __WALL);
        if (got != manager || !WIFSTOPPED(status))
            return false;
        /* The whole process was stopped from outside: stay so, and be told when it goes on. */
        if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP)
            CHECK(ptrace(PTRACE_LISTEN, manager, NULL, NULL) == 0);
        else
            return true;
    }
}

/* Until it is seen at work, for a while: chance alone mostly meets it asleep. */
static void wait_busy(pid_t manager, pid_t child)
{
    for (int i = 0; i < 4000; i++) {
        char text[512];
        if (task_read(child, manager, "stat", text, sizeof text) == 0 || strstr(text, ") S") == NULL)
            return;
    }
}

static bool stop(pid_t manager)
{
    return ptrace(PTRACE_INTERRUPT, manager, NULL, NULL) == 0 && wait_stop(manager);
}

static bool advances(uint64_t from, int milliseconds)
{
    for (int i = 0; i < milliseconds && shared->progress <= from; i++)
        sleep_us(1000);
    return shared->progress > from;
}

/* The manager is stopped; the program takes `more` steps or it is known why not. */
static void expect_progress(pid_t manager, unsigned more)
{
    for (unsigned i = 0; i < more; i++) {
        uint64_t from = shared->progress;
        if (advances(from, 400))
            continue;
        if (shared->doing == doing_wait)
            other_waits++;
        else
            memory_waits++;
        for (int slices = 0; !advances(from, 2); slices++) {
            CHECK_MSG(slices < 5000, "the program does not go on, and it is no lock the manager lets go of");
            CHECK_MSG(ptrace(PTRACE_CONT, manager, NULL, NULL) == 0, "the program has ended");
            sleep_us(200);
            CHECK_MSG(stop(manager), "the program has ended");
        }
    }
}

/* Ends the program beside the stopped manager. */
static void expect_end(pid_t child, pid_t manager)
{
    int status, left = 0;
    shared->stop = 1;
    for (int slept = 0;;) {
        pid_t got = waitpid(-1, &status, __WALL | WNOHANG);
        if (got == child && (WIFEXITED(status) || WIFSIGNALED(status)))
            break;
        if (got > 0)
            continue; /* the manager's own end, seen by its tracer */
        sleep_us(1000);
        if (++slept % 500 != 0)
            continue;
        /* The last fork, or a lock. */
        CHECK_MSG(left++ < 5000, "the program does not end");
        if (ptrace(PTRACE_CONT, manager, NULL, NULL) == 0) {
            sleep_us(200);
            stop(manager);
        }
        slept = 499 - 2;
    }
    CHECK_MSG(status == 0, "the program ended with status 0x%x", (unsigned)status);
}

static void run(struct rng *rng, unsigned rounds)
{
    memset(shared, 0, sizeof *shared);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        program(rng_next(rng));
    while (shared->manager == 0)
        sleep_us(1000);
    pid_t manager = shared->manager;
    if (ptrace(PTRACE_SEIZE, manager, NULL, NULL) != 0) {
        kill(child, SIGKILL);
        SKIP("no thread may be traced here: errno %d", errno);
    }
    for (unsigned i = 0; i < rounds; i++) {
        sleep_us((unsigned)rng_below(rng, 20000));
        if (rng_below(rng, 4) != 0)
            wait_busy(manager, child);
        CHECK_MSG(stop(manager), "the program has ended");
        pauses++;
        expect_progress(manager, 1 + (unsigned)rng_below(rng, 60));
        if (i + 1 < rounds)
            CHECK(ptrace(PTRACE_CONT, manager, NULL, NULL) == 0);
    }
    expect_end(child, manager);
}

int main(int argc, char **argv)
{
    test_begin((unsigned)test_option(argc, argv, "--seconds", 100));
    struct rng rng = {test_seed_from(NULL)};
    uint64_t runs = test_option(argc, argv, "--runs", 8), rounds = test_option(argc, argv, "--rounds", 12);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (uint64_t i = 0; i < runs; i++)
        run(&rng, 1 + (unsigned)rng_below(&rng, rounds));
    test_say("%u pauses; memory was waited for in %u, fork and purge in %u\n", pauses, memory_waits, other_waits);
    CHECK_MSG(memory_waits <= 2 + pauses / 14, "the manager holds locks the program needs for too much of its time");
    return 0;
}
