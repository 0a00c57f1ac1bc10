/* SPDX-License-Identifier: MIT
 *
 * Why: functions are opened and closed, threads end, programs fork.
 */
#include "around.h"
#include "caller.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t blocked_at_start;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static char main_thread_mark;
static pid_t process;
static uint32_t slots_used;
static struct predict_function *functions[PREDICT_FUNCTIONS]; /* NULL: closed.  Under the manager's lock */

static uint64_t blocked_signals(void)
{
    uint64_t blocked = UINT64_MAX;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &blocked, sizeof blocked);
    return blocked;
}

/* A thread must not be made in a signal handler.  In one, a signal is blocked that the process did not begin with. */
bool may_be_in_handler(void)
{
    return (blocked_signals() & ~blocked_at_start) != 0;
}

static bool is_main(void)
{
    return syscall(SYS_gettid) == getpid();
}

struct predict_client *client_new(struct predict_function *function)
{
    int saved = errno;
    struct predict_client *client = GAVE_UP;
    if (pthread_setspecific(thread_key, &main_thread_mark) == 0)
        client = mmap(NULL, sizeof *client, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (client == MAP_FAILED)
        client = GAVE_UP;
    if (client != GAVE_UP) {
        client->function = function;
        client->bytes = sizeof *client;
    }
    errno = saved;
    return mine.clients[function->slot] = client;
}

/* A handler that interrupted predict_ask may have forked: what that call is looking at must stay. */
static bool is_in_use(struct predict_client *client)
{
    return mine.inside != 0 && client->function != NULL && mine.clients[client->function->slot] == client;
}

/* The child has no second thread until it asks for one. */
static void become_child(bool (*keep)(struct predict_client *))
{
    for (size_t i = 0; i < PREDICT_FUNCTIONS; i++) {
        struct predict_client *client = mine.clients[i];
        if (is_client(client) && !client->listed && mine.inside == 0)
            client_free(client);
    }
    process = getpid();
    worker_after_fork(keep);
    for (size_t i = 0; i < PREDICT_FUNCTIONS; i++) {
        if (is_client(mine.clients[i]))
            mine.clients[i] = NULL;
    }
    pthread_setspecific(thread_key, &main_thread_mark);
}

static void fork_child(void)
{
    become_child(is_in_use);
}

/* It may have threads of its own by now. */
static bool is_anyones(struct predict_client *client)
{
    (void)client;
    return true;
}

/* Handlers run for fork alone.  A child of _Fork or clone has what its parent's threads held and did at that moment,
 * and none of them: before it takes a lock or waits, it becomes what a child of fork is. */
static void notice_child(void)
{
    if (process != getpid())
        become_child(is_anyones);
}

static void thread_ends(void *unused)
{
    (void)unused;
    notice_child();
    manager_pause(); /* predict_close() may be at work on the same functions */
    for (size_t i = 0; i < PREDICT_FUNCTIONS; i++) {
        struct predict_client *client = mine.clients[i];
        mine.clients[i] = GAVE_UP;
        if (is_client(client) && functions[i] != NULL)
            client_add_counts(client);
        if (is_client(client) && client->listed)
            STORE(&client->x_retired, 1);
        else if (is_client(client))
            client_free(client);
    }
    manager_resume();
    manager_wake(0);
    if (is_main())
        manager_main_ends();
}

static void fork_prepare(void)
{
    notice_child();
    manager_pause();
}

static void fork_parent(void)
{
    manager_resume();
}

/* Where the function itself calls exit(), on the second thread, there is nobody to wait for. */
static void process_exits(void)
{
    notice_child();
    if (!engine_is_bypassed())
        worker_stop();
}

void stop_before_exit(void)
{
    atexit(process_exits);
}

static void begin(void)
{
    clock_begin();
    process = getpid();
    blocked_at_start = blocked_signals();
    if (pthread_key_create(&thread_key, thread_ends) != 0 || pthread_atfork(fork_prepare, fork_parent, fork_child) != 0)
        slots_used = PREDICT_FUNCTIONS;
    else
        pthread_setspecific(thread_key, &main_thread_mark);
    if (!is_main())
        manager_main_is_silent();
}

EXPORT void predict_open(struct predict_function *function, const char *name, predict_compute *compute, void *context,
                         size_t arguments, size_t results, const enum predict_kind *kinds,
                         const struct predict_options *options)
{
    pthread_once(&once, begin);
    memset(function, 0, sizeof *function);
    function->name = name;
    function->compute = compute;
    function->context = context;
    function->words = (uint32_t)arguments + 1;
    function->results = (uint32_t)results;
    function->options = options_whole(options != NULL ? *options : (struct predict_options){0});
    for (size_t i = 0; i < arguments && i < PREDICT_ARGUMENTS; i++)
        function->kinds[i] = (uint8_t)kinds[i];
    uint32_t slot = __atomic_fetch_add(&slots_used, 1, __ATOMIC_RELAXED);
    bool fits = slot < PREDICT_FUNCTIONS && arguments <= PREDICT_ARGUMENTS && results <= PREDICT_RESULTS;
    function->slot = fits ? slot : 0;
    function->x_off = !fits || function->options.mode == PREDICT_OFF;
    if (fits)
        functions[slot] = function;
}

EXPORT void predict_close(struct predict_function *function)
{
    STORE(&function->x_off, 1);
    if (functions[function->slot] != function)
        return;
    notice_child();
    manager_pause();
    functions[function->slot] = NULL;
    manager_resume();
    worker_forget(function);
}

EXPORT void predict_count(struct predict_function *function, struct predict_counts *counts)
{
    struct predict_client *client = mine.clients[function->slot];
    if (is_client(client) && client->function == function)
        client_add_counts(client);
    *counts = (struct predict_counts){
        .calls = LOAD_RELAXED(&function->x_calls),
        .hits = LOAD_RELAXED(&function->x_hits),
        .memo_hits = LOAD_RELAXED(&function->x_memo_hits),
        .late = LOAD_RELAXED(&function->x_late),
        .wrong = LOAD_RELAXED(&function->x_wrong),
        .threads = LOAD_RELAXED(&function->x_threads),
        .off_after_us = LOAD_RELAXED(&function->x_off_after_us),
        .off = LOAD_RELAXED(&function->x_off) != 0 || client == GAVE_UP,
    };
}
