/* SPDX-License-Identifier: MIT
 *
 * Why: see thread.h.  The main thread is marked even if it owns nothing: what remains of a process whose main thread has
 * ended is to end with the last thread of the program (manager.c).
 */
#include "thread.h"
#include "around.h"
#include "engine.h"
#include "manager.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

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

bool threads_start(void)
{
    if (pthread_key_create(&thread_key, thread_ends) != 0)
        return false;
    pthread_setspecific(thread_key, &main_thread_mark);
    return true;
}

void threads_fork_child(void)
{
    if (pthread_getspecific(thread_key) == NULL)
        pthread_setspecific(thread_key, &main_thread_mark); /* whoever forked is main now */
}
