/* SPDX-License-Identifier: MIT
 *
 * The limits of sweeps: how much is kept until there is one, how much room it takes to write that down, when a thread
 * must not be stopped, and what is done where no sweep can be made.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/allow_all.h"
#include "sweep.h"

/* Blocks come and go, as many bytes as that. */
static void churn(size_t bytes)
{
    static char *kept[64];
    for (size_t i = 0; bytes > 0; i++) {
        size_t n = 100 + i * 37 % 3000;
        free(kept[i % 64]);
        kept[i % 64] = malloc(n);
        kept[i % 64][0] = 1;
        bytes -= n < bytes ? n : bytes;
    }
}

void bounded(void)
{
    churn(400 * MIB);
    expect(stats().kept_bytes < 40 * MIB, "what is kept is bounded");
    expect(stats().sweeps > 0 && stats().failed_sweeps == 0, "by sweeps");
    expect(stats().unswept_blocks == 0, "and nothing was given back without one");
}

static void free_large(size_t bytes, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        char *p = malloc(bytes);
        expect(p != NULL, "where all is freed, there is memory");
        p[0] = 1;
        free(p);
        churn(100000);
    }
}

/* Kept large blocks count for little, and are live no more: small ones beside them must not pile up. */
void bounded_large(void)
{
    free_large(MIB, 5000);
    free_large(20 * MIB, 300);
    expect(stats().live_bytes < 40 * MIB, "what is kept is not live");
    expect(stats().kept_bytes < 40 * MIB, "what is kept beside large blocks is bounded");
    expect(stats().sweeps > 0 && stats().unswept_blocks == 0, "by sweeps");
}

/* Under a limit of the address space large blocks go through it again and again. */
void limited_large(void)
{
    const struct rlimit bound = {3000 * MIB, 3000 * MIB};
    setrlimit(RLIMIT_AS, &bound);
    free_large(3 * MIB, 5000);
    expect(stats().sweeps > 0 && stats().unswept_blocks == 0, "by sweeps");
}

static void use_all_cpus(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
}

enum { CROWD = 1000, CROWD_BLOCKS = 5000 };
static pthread_barrier_t all_there;

static void *free_many(void *unused)
{
    uintptr_t *p = malloc(CROWD_BLOCKS * sizeof *p);
    for (int i = 0; i < CROWD_BLOCKS; i++)
        p[i] = ~(uintptr_t)malloc(16 + 16 * (size_t)(i % 4));
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < CROWD_BLOCKS; i++)
        free((void *)~p[i]);
    free(p);
    return unused;
}

static size_t most_address_space(void)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmPeak: %zu", &kib) == 1)
            break;
    fclose(file);
    return kib << 10;
}

/* All of them want room to write down what they keep, at the same time. */
void crowd(void)
{
    pthread_t thread[CROWD];
    pthread_attr_t small;
    const size_t live = CROWD * (size_t)CROWD_BLOCKS * (40 + sizeof(uintptr_t)), stacks = CROWD * (size_t)65536;
    const struct rlimit bound = {16 * live, 16 * live}; /* so that a failure does not take the machine with it */
    use_all_cpus();
    setrlimit(RLIMIT_AS, &bound);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all_there, NULL, CROWD);
    for (int i = 0; i < CROWD; i++)
        expect(pthread_create(&thread[i], &small, free_many, NULL) == 0, "a thread");
    for (int i = 0; i < CROWD; i++)
        pthread_join(thread[i], NULL);
    expect(most_address_space() < 4 * live + stacks,
           "what many threads keep at once takes no more room than it has to");
}

static atomic_uint asked, answered;

static void *answer(void *unused)
{
    while (!atomic_load(&leave)) {
        atomic_store(&answered, atomic_load(&asked));
        sched_yield();
    }
    return unused;
}

static void ask(int number)
{
    const unsigned question = atomic_fetch_add(&asked, (unsigned)(number == SIGALRM)) + 1;
    while (atomic_load(&answered) != question)
        sched_yield();
}

static void set_timer(suseconds_t every_us)
{
    const struct itimerval timer = {{0, every_us}, {0, every_us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* A signal handler of the thread that sweeps waits for another, as runtimes do that suspend threads: that one must not
 * be stopped. */
void handler(void)
{
    pthread_t thread;
    const struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART};
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    use_all_cpus();
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    pthread_create(&thread, NULL, answer, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    sigaction(SIGALRM, &action, NULL);
    set_timer(1000);
    while (stats().sweeps < 100)
        churn(MIB);
    set_timer(0);
    atomic_store(&leave, 1);
    pthread_join(thread, NULL);
    expect(atomic_load(&asked) > 0, "the handler ran");
}

void filtered(void)
{
    churn(20 * MIB);
    const uint64_t sweeps = stats().sweeps;
    expect(sweeps > 0, "there are sweeps before there is a filter");
    expect(install_allow_all_filter(), "a filter can be installed");
    churn(400 * MIB);
    expect(stats().sweeps == sweeps, "under a filter there are none");
    expect(stats().kept_bytes < 40 * MIB, "and what is kept is bounded");
}

static void write_behind_freed(void)
{
    volatile char *p = malloc(40);
    free((void *)p);
    p[20] = 1;
    for (int i = 0; i < 10000; i++)
        free(malloc(40));
}

/* A filter that is there before the program. */
void filtered_before(void)
{
    if (getenv("SWEEP_TEST_FILTERED") == NULL) {
        setenv("SWEEP_TEST_FILTERED", "1", 1);
        expect(install_allow_all_filter(), "a filter can be installed");
        execl("/proc/self/exe", "sweep", "filtered_before", (char *)NULL);
        fail("exec");
    }
    churn(100 * MIB);
    expect(stats().sweeps == 0 && stats().failed_sweeps == 0 && stats().kept_blocks == 0, "there are no sweeps");
    expect(end_of(write_behind_freed) != 0, "and the first tier is there");
}

static void *block_truly(void *unused)
{
    uint64_t all = ~0ull;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
    return on_its_stack(unused);
}

static bool is_auto(void)
{
    const char *word = getenv("SUTLER_SWEEP");
    return word != NULL && strcmp(word, "auto") == 0;
}

/* A thread that cannot be stopped, by no means of libc's. */
void unstoppable(void)
{
    pthread_t thread;
    take_block();
    pthread_create(&thread, NULL, block_truly, NULL);
    await(&ready);
    free_block();
    expect_kept();
    expect(stats().failed_sweeps > 0 && stats().sweeps == 0, "no sweep can be made");
    churn(60 * MIB);
    if (is_auto())
        expect(stats().kept_bytes < 40 * MIB && stats().unswept_blocks > 0, "what is kept is bounded all the same");
    else
        expect(stats().unswept_blocks == 0, "nothing is given back");
    atomic_store(&leave, 1);
    pthread_join(thread, NULL);
    is_handed_out();
    expect(stats().sweeps > 0, "when it is gone there are sweeps");
}

static void churn_and_expect_sweeps(void)
{
    const uint64_t sweeps = stats().sweeps;
    churn(60 * MIB);
    expect(stats().sweeps > sweeps, "in a child there are sweeps at once, though its parent could make none");
}

/* What kept its parent from sweeping is not in the child. */
void fork_unstoppable(void)
{
    enum { FAILURES = 6 }; /* by then the parent would try again in some seconds */
    pthread_t thread;
    pthread_create(&thread, NULL, block_truly, NULL);
    await(&ready);
    while (stats().failed_sweeps < FAILURES)
        purge();
    expect(end_of(churn_and_expect_sweeps) == 0, "the child");
    atomic_store(&leave, 1);
    pthread_join(thread, NULL);
}
