/* SPDX-License-Identifier: MIT
 *
 * Why: every engine has one second thread (the thesis's manager, MMT's server), and its life is the same in all: started on
 * the first need, outside of any lock, with all signals blocked; asleep on a futex when there is nothing to do; out of the
 * way of fork; and never the reason that a process does not end.
 *
 * Sleep and wake need no atomic read-modify-write (MMT III-E2: single-writer counters).  The sleeper stores `sleeping`,
 * fences, looks for work once more, then waits; the waker publishes its work with plain stores, fences, and looks at
 * `sleeping`.  One of the two sees the other; the waker's store of 0 makes a futex wait that has not begun return at once.
 *
 * fork: the manager holds `work` whenever it may be in the middle of something.  A forking thread raises `pausing` and takes
 * `work`, so the snapshot holds no half-done work; the manager gives way at its checkpoints (a mutex alone would be unfair:
 * it could take it again at once).  The child has no manager and gets one on its next need.  Whoever waits for the manager
 * meanwhile gives up and goes around it (around.h): the forking thread may be waiting for him, in another library's handler.
 *
 * Exit: exit() just ends the manager with the process.  When main leaves by pthread_exit the C library ends the process
 * with the last thread, and the manager would be a thread for ever: so it wakes once a second, and if main is gone and it
 * is alone, it returns, which ends the process as the last thread of the program would have.
 */
#include "manager.h"
#include "around.h"
#include "engine.h"
#include "say.h"
#include "sync.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES   ((size_t)512 * 1024)
#define SPIN_NS       20000 /* as long as a futex wake takes: then waiting costs at most twice what it had to */
#define SPINS_MOST    2000u
#define SPINS_A_YIELD 512u
#define IDLE_CHECK_MS 1000

/* Read at every call; what is written at every sleep is on a line of its own. */
_Alignas(64) uint32_t manager_state;
unsigned engine_spins;

static bool main_gone;
static clockid_t manager_clock; /* its cpu time */

static struct {
    _Alignas(64) struct mutex work;
    uint32_t pausing;
    uint32_t sleeping;
} at;

/* One turn of a long spin (SUTLER_ENGINE_SPINS): whoever is waited for may want this very cpu. */
static void spin(unsigned turn)
{
    if (turn % SPINS_A_YIELD == SPINS_A_YIELD - 1)
        sched_yield();
    else
        engine_pause();
}

void engine_relax(unsigned *turn)
{
    if (*turn < engine_spins) {
        spin(*turn);
    } else if (*turn < engine_spins + 50) {
        sched_yield();
    } else {
        struct timespec nap = {0, 50000};
        syscall(SYS_nanosleep, &nap, NULL); /* the C library's would be a cancellation point */
    }
    ++*turn;
}

bool manager_await(uint32_t *word, uint32_t value, uint32_t *waiting)
{
    for (unsigned i = 0; i < engine_spins && LOAD(word) == value; i++)
        spin(i);
    while (LOAD(word) == value && !fork_is_under_way()) {
        STORE_RELAXED(waiting, 1);
        FENCE(); /* partner: manager_answer.  It sees `waiting`, or the futex sees the new value. */
        futex_wait(word, value, LOOK_MS);
    }
    STORE_RELAXED(waiting, 0);
    return LOAD(word) != value;
}

void manager_answer(uint32_t *word, const uint32_t *waiting)
{
    FENCE();
    if (LOAD_RELAXED(waiting) != 0)
        futex_wake(word, INT_MAX);
}

/* The number of threads is the link count of the task folder, less two; the ended main thread still counts. */
bool manager_is_alone(void)
{
    struct stat status;
    if (!LOAD(&main_gone) || stat("/proc/self/task", &status) != 0)
        return false;
    return status.st_nlink - 2 <= 2;
}

static void *manager_main(void *unused)
{
    (void)unused;
    engine_bypass = 1;
    pthread_getcpuclockid(pthread_self(), &manager_clock);
    prctl(PR_SET_NAME, "sutler-engine");
    engine.manage();
    return NULL;
}

/* A pause takes from 10 to 140 cycles, by the processor. */
static unsigned spins_of(long ns)
{
    enum { TRIAL = 64 };
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < TRIAL; i++)
        engine_pause();
    clock_gettime(CLOCK_MONOTONIC, &end);
    long trial_ns = (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
    unsigned spins = (unsigned)(ns * TRIAL / (trial_ns > 0 ? trial_ns : 1)) + 1;
    return spins < SPINS_MOST ? spins : SPINS_MOST;
}

/* Called with no lock held, by the first thread that needs the manager.  Others do not wait for it. */
bool manager_start(void)
{
    uint32_t absent = MANAGER_ABSENT;
    if (engine_bypass > 0 || !__atomic_compare_exchange_n(&manager_state, &absent, MANAGER_STARTING, false,
                                                           __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    int saved = errno;
    engine_bypass++;
    cpu_set_t cpus;
    engine_spins = sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 1 ? spins_of(SPIN_NS) : 0;
    const char *spins = engine_option("SUTLER_ENGINE_SPINS"); /* 0: where instructions are counted, or cores are short */
    if (spins != NULL)
        engine_spins = (unsigned)strtoul(spins, NULL, 10);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    bool started = pthread_create(&thread, &attributes, manager_main, NULL) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    STORE(&manager_state, started ? MANAGER_RUNNING : MANAGER_FAILED);
    engine_bypass--;
    errno = saved;
    return started;
}

void manager_begin(void)
{
    mutex_lock(&at.work);
}

void manager_end(void)
{
    mutex_unlock(&at.work);
}

void manager_checkpoint(void)
{
    uint32_t asked = LOAD(&at.pausing);
    if (LIKELY(asked == 0))
        return;
    manager_end();
    while ((asked = LOAD(&at.pausing)) != 0)
        futex_wait(&at.pausing, asked, IDLE_CHECK_MS);
    manager_begin();
}

bool manager_sleep(bool (*wanted)(void))
{
    for (unsigned i = 0; i < engine_spins; i++) {
        manager_checkpoint();
        if (wanted())
            return true;
        spin(i);
    }
    STORE_RELAXED(&at.sleeping, 1);
    FENCE(); /* partner: manager_wake */
    if (!wanted()) {
        manager_end();
        futex_wait(&at.sleeping, 1, IDLE_CHECK_MS);
        manager_begin();
    }
    STORE_RELAXED(&at.sleeping, 0);
    manager_checkpoint();
    return !manager_is_alone();
}

void manager_wake(void)
{
    FENCE(); /* partner: manager_sleep */
    if (LOAD_RELAXED(&at.sleeping) != 0) {
        STORE_RELAXED(&at.sleeping, 0);
        futex_wake(&at.sleeping, 1);
    }
}

void manager_pause(void)
{
    __atomic_fetch_add(&at.pausing, 1, __ATOMIC_ACQ_REL);
    mutex_lock(&at.work);
}

void manager_resume(void)
{
    mutex_unlock(&at.work);
    __atomic_fetch_sub(&at.pausing, 1, __ATOMIC_ACQ_REL);
    futex_wake(&at.pausing, INT_MAX);
}

/* In a forked child. */
void manager_forget(void)
{
    at.work = (struct mutex){0};
    at.pausing = 0;
    at.sleeping = 0;
    STORE(&main_gone, false);
    STORE(&manager_state, MANAGER_ABSENT);
}

void manager_main_ends(void)
{
    STORE(&main_gone, true);
}

/* The papers do not tell of it: it is not free. */
uint64_t manager_cpu_us(void)
{
    struct timespec used;
    if (LOAD(&manager_state) != MANAGER_RUNNING || clock_gettime(manager_clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}
