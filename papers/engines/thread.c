/* SPDX-License-Identifier: MIT
 *
 * Why: see thread.h.  The main thread is marked even if it owns nothing: what remains of a process whose main thread
 * has ended is to end with the last thread of the program (manager.c).
 */
#include "thread.h"
#include "around.h"
#include "backend.h"
#include "engine.h"
#include "manager.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A fork waits no longer for threads that begin, nor they for forks: the one may hold a lock in a foreign handler that
 * the other is waiting for. */
#define ENTRY_WAIT_MS 100

static uint32_t entering;
static pthread_key_t thread_key;
static char main_thread_mark;

void engine_thread_own(void *mine)
{
    engine_bypass++;
    pthread_setspecific(thread_key, mine);
    engine_bypass--;
}

static void thread_ends(void *mine)
{
    if (mine != &main_thread_mark && engine.thread_exit != NULL)
        engine.thread_exit(mine);
    if (syscall(SYS_gettid) == getpid())
        manager_main_ends();
}

static void nap_1ms(void)
{
    struct timespec nap = {0, 1000000};
    syscall(SYS_nanosleep, &nap, NULL);
}

void thread_enters(void)
{
    int saved = errno;
    engine_bypass++;
    __atomic_fetch_add(&entering, 1, __ATOMIC_SEQ_CST);
    FENCE(); /* partner: threads_fork_prepare */
    for (int ms = 0; ms < ENTRY_WAIT_MS && fork_is_under_way(); ms++) {
        __atomic_fetch_sub(&entering, 1, __ATOMIC_SEQ_CST);
        nap_1ms();
        __atomic_fetch_add(&entering, 1, __ATOMIC_SEQ_CST);
        FENCE();
    }
    backend.free(backend.malloc(1));
    __atomic_fetch_sub(&entering, 1, __ATOMIC_SEQ_CST);
    engine_bypass -= ENGINE_NEWCOMER + 1;
    errno = saved;
}

void threads_fork_prepare(void)
{
    FENCE(); /* partner: thread_enters */
    for (int ms = 0; ms < ENTRY_WAIT_MS && LOAD(&entering) != 0; ms++)
        nap_1ms();
}

bool threads_start(void)
{
    if (pthread_key_create(&thread_key, thread_ends) != 0)
        return false;
    pthread_setspecific(thread_key, &main_thread_mark);
    return true;
}

void threads_fork_child(void)
{
    entering = 0; /* those are the parent's */
    if (pthread_getspecific(thread_key) == NULL)
        pthread_setspecific(thread_key, &main_thread_mark); /* whoever forked is main now */
}
