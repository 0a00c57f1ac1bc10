/* SPDX-License-Identifier: MIT
 *
 * One size class in a storm: more threads than cpus, moved from cpu to cpu, hit by a timer signal whose handler also
 * allocates, giving up the cpu at random, handing blocks to each other, and (with --purge 1) with every superblock
 * taken offline again and again.  A side table holds a flag for every address a block may have: a block handed out
 * twice is found at that moment, not when its content breaks.  In the end every block must be back.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "manager/snapshot.h"
#include "heap/purge.h"
#include "heap/signal_safe.h"
#include "inspect.h"
#include "os/os.h"
#include "unit.h"

#define THREADS_MAX 64
#define HELD_MAX    300
#define SHARED      256
#define FLAGGED_BYTES ((size_t)64 << 30) /* of region */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static size_t block_size;
static _Atomic(void *) shared_block[SHARED];
static _Atomic bool stop;
static _Atomic uint64_t operations, signals, signal_safe_blocks;

static void *take(void)
{
    void *block = malloc(block_size);
    EXPECT(block != NULL);
    if (atomic_exchange(flag_of(block), 1) != 0)
        FAIL("block %p handed out twice", block);
    return block;
}

static void give(void *block)
{
    if (atomic_exchange(flag_of(block), 0) != 1)
        FAIL("block %p is not out", block);
    free(block);
}

/* Each thread's handler keeps a few blocks of its own, so that they live from one signal to another. */
static __thread void *handler_block[8];
static __thread unsigned handler_turn;

static void on_signal(int number)
{
    (void)number;
    int saved = errno;
    void **slot = &handler_block[handler_turn++ % ARRAY_LEN(handler_block)];
    if (*slot != NULL)
        give(*slot);
    *slot = handler_turn % 3 == 0 ? NULL : take();
    signal_safe_blocks += *slot != NULL && signal_safe_contains(*slot);
    signals++;
    errno = saved;
}

static timer_t start_timer(unsigned interval_us)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    timer_t timer;
    EXPECT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    struct itimerspec times = {.it_interval.tv_nsec = interval_us * 1000l, .it_value.tv_nsec = interval_us * 1000l};
    EXPECT_EQ(timer_settime(timer, 0, &times, NULL), 0);
    return timer;
}

static void hop(struct rng *rng)
{
    static unsigned cpus;
    if (cpus == 0)
        cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(rng_below(rng, cpus), &set);
    sched_setaffinity(0, sizeof set, &set);
}

struct thread {
    uint64_t seed;
    unsigned interval_us;
};

static void *work(void *argument)
{
    const struct thread *me = argument;
    struct rng rng = {me->seed};
    void **held = unit_map(HELD_MAX * sizeof *held);
    unsigned count = 0, aim = 100;
    uint64_t done = 0;
    timer_t timer = start_timer(me->interval_us);
    for (; !stop; done++) {
        unsigned what = (unsigned)rng_below(&rng, 1024);
        if (what < 4)
            aim = (unsigned)rng_below(&rng, HELD_MAX);
        if (what == 4)
            hop(&rng);
        if (what >= 5 && what < 20)
            sched_yield();
        if (what >= 20 && what < 260) { /* swap one with whoever comes by */
            void *mine = count > 0 ? held[--count] : NULL;
            void *theirs = atomic_exchange(&shared_block[rng_below(&rng, SHARED)], mine);
            if (theirs != NULL && rng_below(&rng, 2) == 0)
                give(theirs);
            else if (theirs != NULL)
                held[count++] = theirs;
        }
        if (count < aim && count < HELD_MAX)
            held[count++] = take();
        else if (count > 0)
            give(held[--count]);
    }
    timer_delete(timer);
    sigset_t set;
    sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    while (count > 0)
        give(held[--count]);
    for (size_t i = 0; i < ARRAY_LEN(handler_block); i++)
        if (handler_block[i] != NULL)
            give(handler_block[i]);
    operations += done;
    munmap(held, HELD_MAX * sizeof *held);
    return NULL;
}

static size_t blocks_out(void)
{
    size_t n = 0;
    for (size_t at = 0; at < region_opened_bytes(); at += BLOCK_ALIGNMENT)
        n += *flag_of((char *)hot.region_base + at) != 0;
    return n;
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(600);
    struct rng rng = unit_rng();
    unsigned threads = (unsigned)unit_option(argc, argv, "--threads", 7);
    uint64_t duration_ms = unit_option(argc, argv, "--ms", 4000);
    unsigned frequency = (unsigned)unit_option(argc, argv, "--hz", 5000);
    bool purging = unit_option(argc, argv, "--purge", 0) != 0;
    block_size = unit_option(argc, argv, "--size", 336);
    unsigned c = size_class_of(block_size);
    EXPECT(threads <= THREADS_MAX);
    flags_map(FLAGGED_BYTES);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    size_t before = class_inspect(c).live;

    static struct thread argument[THREADS_MAX];
    static pthread_t thread[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++) {
        argument[i] = (struct thread){rng_next(&rng), 1000000 / frequency * threads + i};
        EXPECT_EQ(pthread_create(&thread[i], NULL, work, &argument[i]), 0);
    }
    uint64_t end = os_now_ns() + duration_ms * 1000000, passes = 0;
    while (os_now_ns() < end) {
        if (!purging) {
            usleep(10000);
            continue;
        }
        EXPECT(slow_enter());
        heap_purge(purge_force, NULL);
        slow_leave();
        passes++;
        if (rng_below(&rng, 64) == 0)
            usleep((useconds_t)rng_below(&rng, 500));
    }
    stop = true;
    for (unsigned i = 0; i < threads; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < SHARED; i++)
        if (shared_block[i] != NULL)
            give(shared_block[i]);

    EXPECT_EQ(blocks_out(), 0);
    EXPECT_EQ(class_inspect(c).live, before);
    expect_heaps_sound();
    struct sutler_stats stats;
    snapshot_take(&stats);
    unit_say("%llu operations, %llu signals (%llu in slow paths), %llu refills, %llu takeovers, %llu aborts seen, %llu "
             "purge passes\n",
             (unsigned long long)operations, (unsigned long long)signals, (unsigned long long)signal_safe_blocks,
             (unsigned long long)stats.refills, (unsigned long long)stats.takeovers, (unsigned long long)stats.aborts,
             (unsigned long long)passes);
    EXPECT(operations > 1000 && signals > 0);
    return 0;
}
