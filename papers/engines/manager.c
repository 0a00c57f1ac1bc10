/* SPDX-License-Identifier: MIT
 *
 * Why: every engine has a second thread (the thesis's manager, MMT's server), and its life is the same in all: started
 * on the first need, outside of any lock, with all signals blocked; asleep on a futex when there is nothing to do; out
 * of the way of fork; and never the reason that a process does not end.
 *
 * An engine whose work can be divided may have several (SUTLER_ENGINE_MANAGERS, thesis chapter 10).  They start
 * together, pause together and end together; which of them has what to do is the engine's affair.
 *
 * Sleep and wake need no atomic read-modify-write (MMT III-E2: single-writer counters).  The sleeper stores `sleeping`,
 * fences, looks for work once more, then waits; the waker publishes its work with plain stores, fences, and looks at
 * `sleeping`.  One of the two sees the other; the waker's store of 0 makes a futex wait that has not begun return at
 * once.
 *
 * fork: a manager holds its `work` whenever it may be in the middle of something.  A forking thread raises `pausing`
 * and takes `work` of each, so the snapshot holds no half-done work; managers give way at their checkpoints (a mutex
 * alone would be unfair: it could be taken again at once).  The child has none and starts them on its next need.
 * Whoever waits for a manager meanwhile gives up and goes around it (around.h): the forking thread may be waiting for
 * him, in another library's handler.
 *
 * Exit: exit() just ends the manager with the process.  When main leaves by pthread_exit the C library ends the process
 * with the last thread, and the manager would be a thread for ever: so it wakes once a second, and if main is gone and
 * only managers are left, it returns, which ends the process as the last thread of the program would have.  Main says
 * when it ends; where it was not there to be asked to, it is looked for.
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

unsigned manager_count = 1;

static enum { MAIN_WILL_TELL, MAIN_SILENT, MAIN_GONE } main_state;
static uint32_t pausing; /* forks that want all managers out of the way */

static struct manager {
    _Alignas(64) struct mutex work;
    uint32_t sleeping;
    clockid_t clock; /* its cpu time */
} managers[MANAGERS_MOST];

static __thread struct manager *mine __attribute__((tls_model("initial-exec"))); /* a manager's, on its own thread */

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

/* What remains of a thread that has ended has no program file. */
static bool main_has_ended(void)
{
    char file[1];
    return LOAD(&main_state) == MAIN_GONE || (readlink("/proc/self/exe", file, sizeof file) < 0 && errno == ENOENT);
}

/* The number of threads is the link count of the task folder, less two; the ended main thread still counts. */
bool manager_is_alone(void)
{
    struct stat status;
    if (LOAD(&main_state) == MAIN_WILL_TELL || stat("/proc/self/task", &status) != 0)
        return false;
    return status.st_nlink - 2 <= 1 + manager_count && main_has_ended();
}

unsigned manager_number(void)
{
    return (unsigned)(mine - managers);
}

static void *manager_main(void *manager)
{
    mine = manager;
    engine_bypass = 1;
    pthread_getcpuclockid(pthread_self(), &mine->clock);
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

/* All or none: those that did start find nothing to do. */
static bool start_all(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool started = true;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (!engine.runs_functions)
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (unsigned i = 0; i < manager_count && started; i++)
        started = pthread_create(&thread, &attributes, manager_main, &managers[i]) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

/* Called with no lock held, by the first thread that needs the manager.  Others do not wait for it. */
bool manager_start(void)
{
    uint32_t absent = MANAGER_ABSENT;
    if (engine_is_bypassed() || !__atomic_compare_exchange_n(&manager_state, &absent, MANAGER_STARTING, false,
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
    bool started = start_all();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    STORE(&manager_state, started ? MANAGER_RUNNING : MANAGER_FAILED);
    engine_bypass--;
    errno = saved;
    return started;
}

void manager_begin(void)
{
    mutex_lock(&mine->work);
}

void manager_end(void)
{
    mutex_unlock(&mine->work);
}

void manager_checkpoint(void)
{
    uint32_t asked = LOAD(&pausing);
    if (LIKELY(asked == 0))
        return;
    manager_end();
    while ((asked = LOAD(&pausing)) != 0)
        futex_wait(&pausing, asked, IDLE_CHECK_MS);
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
    STORE_RELAXED(&mine->sleeping, 1);
    FENCE(); /* partner: manager_wake */
    if (!wanted()) {
        manager_end();
        futex_wait(&mine->sleeping, 1, IDLE_CHECK_MS);
        manager_begin();
    }
    STORE_RELAXED(&mine->sleeping, 0);
    manager_checkpoint();
    return !manager_is_alone();
}

void manager_wake(unsigned which)
{
    uint32_t *sleeping = &managers[which].sleeping;
    FENCE(); /* partner: manager_sleep */
    if (LOAD_RELAXED(sleeping) != 0) {
        STORE_RELAXED(sleeping, 0);
        futex_wake(sleeping, 1);
    }
}

void manager_pause(void)
{
    __atomic_fetch_add(&pausing, 1, __ATOMIC_ACQ_REL);
    for (unsigned i = 0; i < manager_count; i++)
        mutex_lock(&managers[i].work);
}

void manager_resume(void)
{
    for (unsigned i = 0; i < manager_count; i++)
        mutex_unlock(&managers[i].work);
    __atomic_fetch_sub(&pausing, 1, __ATOMIC_ACQ_REL);
    futex_wake(&pausing, INT_MAX);
}

/* In a forked child. */
void manager_forget(void)
{
    for (unsigned i = 0; i < manager_count; i++)
        managers[i] = (struct manager){0};
    pausing = 0;
    STORE(&main_state, MAIN_WILL_TELL);
    STORE(&manager_state, MANAGER_ABSENT);
}

void manager_main_ends(void)
{
    STORE(&main_state, MAIN_GONE);
}

void manager_main_is_silent(void)
{
    STORE(&main_state, MAIN_SILENT);
}

/* The papers do not tell of it: it is not free. */
uint64_t manager_cpu_us(void)
{
    struct timespec used;
    uint64_t us = 0;
    for (unsigned i = 0; LOAD(&manager_state) == MANAGER_RUNNING && i < manager_count; i++) {
        if (managers[i].clock != 0 && clock_gettime(managers[i].clock, &used) == 0)
            us += (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
    }
    return us;
}
