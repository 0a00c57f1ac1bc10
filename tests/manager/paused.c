/* SPDX-License-Identifier: MIT
 *
 * The manager stops where it stands: because the system gives it no processor, because a debugger holds it, for ever.
 * The program goes on inline.  Only a tracer can stop one thread, so the test is one: a program grows, frees and forks,
 * its blocks' content checked; the tracer stops the manager at random moments, and where each of its system calls
 * begins and ends, the steps of its jobs as they are seen from outside; watches the program go on, and lets it go
 * again; or, at the end of every run, never again, and the program runs to its end beside it.
 *
 * What may make the program wait is a lock the manager holds at that moment: then the manager is let run for a fraction
 * of a millisecond at a time until it has let go.  For memory that must be rare (it works outside the locks); fork and
 * sutler_purge() wait for the end of one piece of work by design, and are not counted.  Where the manager never lets go
 * the test says that it hangs.
 *
 * The program has a second thread, which sleeps: a manager would leave for the forks of a program that has one.
 * Whether that waits for a manager that is stopped is tried apart, with one that holds nothing.
 */
#include "watch.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#define FORKS 3

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

static void *thread_waits(void *argument)
{
    while (!shared->stop)
        sleep_us(1000);
    return argument;
}

static void program(uint64_t seed)
{
    struct rng rng = {seed};
    test_watchdog(100);
    pthread_t second;
    CHECK(pthread_create(&second, NULL, thread_waits, NULL) == 0);
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

static void forking_program(uint64_t seed)
{
    struct rng rng = {seed};
    test_watchdog(100);
    shared->manager = manager_start(&rng);
    while (!shared->stop)
        sleep_us(1000);
    for (int i = 0; i < FORKS; i++)
        forks(&rng);
    exit(0);
}

/* ---- the tracer ---- */

static unsigned pauses, by_chance; /* of these, at a moment that was not chosen */
static unsigned memory_waits, memory_waits_by_chance, other_waits;

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

/* ---- steps ---- */

#define STEPS_MOST 64

static struct step {
    long number; /* of the system call */
    bool ends;   /* or begins */
    unsigned held;
} steps_seen[STEPS_MOST];
static unsigned step_count;
static long number_begun; /* what ends has no number of its own */

static struct step *find_step(long number, bool ends)
{
    for (unsigned i = 0; i < step_count; i++)
        if (steps_seen[i].number == number && steps_seen[i].ends == ends)
            return &steps_seen[i];
    return NULL;
}

/* The one the manager stands at; NULL if it does not stand at a system call. */
static struct step *step_here(pid_t manager)
{
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, manager, (void *)sizeof info, &info) <= 0 ||
        (info.op != PTRACE_SYSCALL_INFO_ENTRY && info.op != PTRACE_SYSCALL_INFO_EXIT))
        return NULL;
    bool ends = info.op == PTRACE_SYSCALL_INFO_EXIT;
    if (!ends)
        number_begun = (long)info.entry.nr;
    struct step *seen = find_step(number_begun, ends);
    if (seen != NULL)
        return seen;
    CHECK(step_count < STEPS_MOST);
    steps_seen[step_count] = (struct step){number_begun, ends, 0};
    return &steps_seen[step_count++];
}

static bool gives_back(long number)
{
    return number == SYS_madvise || number == SYS_process_madvise || number == SYS_munmap;
}

static bool is_idle(long number)
{
    return number == SYS_futex || number == SYS_restart_syscall || number == SYS_clock_gettime;
}

/* Goes on from step to step and stays at one where it was seldom held, every other time only at one that gives memory
 * back, which are rare; or wherever it is after a while. */
static bool stop_at_step(pid_t manager, struct rng *rng)
{
    bool rare = rng_below(rng, 2) == 0;
    uint64_t end = now_ms() + 1000;
    while (now_ms() < end) {
        int status;
        pid_t got;
        if (ptrace(PTRACE_SYSCALL, manager, NULL, NULL) != 0)
            return false;
        while ((got = waitpid(manager, &status, __WALL | WNOHANG)) == 0 && now_ms() < end)
            sleep_us(20);
        if (got == 0)
            return stop(manager); /* asleep */
        if (got != manager || !WIFSTOPPED(status))
            return false;
        struct step *step = step_here(manager);
        if (step != NULL && (rare ? gives_back(step->number) : !is_idle(step->number)) &&
            rng_below(rng, step->held + 1) == 0) {
            step->held++;
            return true;
        }
    }
    return true;
}

extern const unsigned int __rseq_size __attribute__((weak)); /* not in every C library */

/* Only sections must be fenced off, and they need the C library's rseq area. */
static bool has_fences(void)
{
    char sync[16];
    CHECK(sutler_option_get("sync", sync, sizeof sync) == 0);
    return strcmp(sync, "rcs") == 0 && &__rseq_size != NULL && __rseq_size != 0;
}

static unsigned times_held(long number, bool ends)
{
    const struct step *step = find_step(number, ends);
    return step == NULL ? 0 : step->held;
}

/* ---- what the program does meanwhile ---- */

static bool advances(uint64_t from, int milliseconds)
{
    for (int i = 0; i < milliseconds && shared->progress <= from; i++)
        sleep_us(1000);
    return shared->progress > from;
}

/* The manager is stopped; the program takes `more` steps or it is known why not. */
static void expect_progress(pid_t manager, bool is_by_chance, unsigned more)
{
    for (unsigned i = 0; i < more; i++) {
        uint64_t from = shared->progress;
        if (advances(from, 400))
            continue;
        if (shared->doing == doing_wait) {
            other_waits++;
        } else {
            memory_waits++;
            memory_waits_by_chance += is_by_chance;
        }
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

/* Starts a program and traces its manager. */
static pid_t start(void (*body)(uint64_t seed), uint64_t seed)
{
    memset(shared, 0, sizeof *shared);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        body(seed);
    while (shared->manager == 0)
        sleep_us(1000);
    if (ptrace(PTRACE_SEIZE, shared->manager, NULL, (void *)PTRACE_O_TRACESYSGOOD) != 0) {
        kill(child, SIGKILL);
        SKIP("no thread may be traced here: errno %d", errno);
    }
    return child;
}

/* A fork does not wait for a manager to leave that cannot. */
static void run_forking(uint64_t seed)
{
    pid_t child = start(forking_program, seed), manager = shared->manager;
    task_settled(child, manager);
    CHECK(stop(manager));
    shared->stop = 1;
    CHECK_MSG(advances(FORKS - 1, 20000), "a fork waits for a manager that is stopped");
    expect_end(child, manager);
}

static void run(struct rng *rng, unsigned rounds)
{
    pid_t child = start(program, rng_next(rng)), manager = shared->manager;
    for (unsigned i = 0; i < rounds; i++) {
        sleep_us((unsigned)rng_below(rng, 20000));
        if (rng_below(rng, 4) != 0)
            wait_busy(manager, child);
        bool is_by_chance = i % 2 == 0;
        CHECK_MSG(stop(manager) && (is_by_chance || stop_at_step(manager, rng)), "the program has ended");
        pauses++;
        by_chance += is_by_chance;
        expect_progress(manager, is_by_chance, 1 + (unsigned)rng_below(rng, 60));
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
    run_forking(rng_next(&rng));
    for (uint64_t i = 0; i < runs; i++)
        run(&rng, 1 + (unsigned)rng_below(&rng, rounds));
    test_say("%u pauses; memory was waited for in %u, fork and purge in %u\n", pauses, memory_waits, other_waits);
    for (unsigned i = 0; i < step_count; i++)
        if (steps_seen[i].held > 0)
            test_say("held %u times where system call %ld %s\n", steps_seen[i].held, steps_seen[i].number,
                     steps_seen[i].ends ? "ends" : "begins");
    const unsigned enough = 100; /* pauses, to have met the rare steps */
    CHECK_MSG(pauses < enough || (times_held(SYS_madvise, false) + times_held(SYS_process_madvise, false) > 0 &&
                                  times_held(SYS_madvise, true) + times_held(SYS_process_madvise, true) > 0 &&
                                  times_held(SYS_mincore, false) > 0 &&
                                  (!has_fences() || times_held(SYS_membarrier, true) > 0)),
              "it was never held at one of the steps that matter");
    CHECK_MSG(memory_waits_by_chance <= 2 + by_chance / 14,
              "the manager holds locks the program needs for too much of its time");
    return 0;
}
