/* SPDX-License-Identifier: MIT
 *
 * Why: the thesis's first attempt (6.1, figures 6.1-6.5), kept to measure what it measured: one round trip between threads
 * costs many times a malloc.  Every call becomes a message to the manager.  There is one message; the request lock keeps
 * other requests from disturbing it until it is answered, the data lock protects its fields, two condition variables tell of
 * a request and of its answer.  malloc is all request processing, nothing runs in parallel.  free is answered as soon as the
 * manager has noted the address (request processing); the backend's free comes after the signal (system processing), when
 * the program already runs on.
 *
 * The data lock is let go for the system processing, or the program could not return from its wait until that is over and
 * nothing would overlap; `busy` says that the manager is at it.
 *
 * fork: prepare takes the request lock (no message under way), then the data lock, and waits for `busy` to end.
 */
#include "engine.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum message_type { MESSAGE_MALLOC, MESSAGE_FREE };
enum message_state { MESSAGE_NONE, MESSAGE_PLACED, MESSAGE_ANSWERED };

/* thesis figure 6.2 */
static struct {
    enum message_type type;
    size_t size;
    void *address;
    void *result;
    enum message_state state;
} message;

static pthread_mutex_t request_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t data_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t request_ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t request_finished = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static bool busy;

/* thesis figures 6.3 and 6.4.  malloc and free are no cancellation points, but waiting on a condition variable is one. */
static void *pass(enum message_type type, size_t size, void *address)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&request_lock);
    pthread_mutex_lock(&data_lock);
    message.type = type;
    message.size = size;
    message.address = address;
    message.state = MESSAGE_PLACED;
    engine_count(&engine_counts.messages);
    pthread_cond_signal(&request_ready);
    while (message.state != MESSAGE_ANSWERED)
        pthread_cond_wait(&request_finished, &data_lock);
    void *result = message.result;
    message.state = MESSAGE_NONE;
    pthread_mutex_unlock(&data_lock);
    pthread_mutex_unlock(&request_lock);
    pthread_setcancelstate(cancel, NULL);
    return result;
}

static void *pass_through_allocate(size_t size)
{
    return manager_ready() ? pass(MESSAGE_MALLOC, size, NULL) : backend.malloc(size);
}

static void pass_through_release(void *block)
{
    if (manager_ready())
        pass(MESSAGE_FREE, 0, block);
    else
        backend.free(block);
}

/* False: nobody is left to serve. */
static bool wait_for_request_locked(void)
{
    while (message.state != MESSAGE_PLACED) {
        struct timespec limit;
        clock_gettime(CLOCK_MONOTONIC, &limit);
        limit.tv_sec++;
        if (pthread_cond_clockwait(&request_ready, &data_lock, CLOCK_MONOTONIC, &limit) == ETIMEDOUT &&
            message.state != MESSAGE_PLACED && manager_is_alone())
            return false;
    }
    return true;
}

/* thesis figure 6.5 */
static void pass_through_manage(void)
{
    pthread_mutex_lock(&data_lock);
    while (wait_for_request_locked()) {
        void *to_free = NULL;
        /* request processing */
        if (message.type == MESSAGE_MALLOC)
            message.result = backend.malloc(message.size);
        else
            to_free = message.address;
        message.state = MESSAGE_ANSWERED;
        busy = to_free != NULL;
        pthread_cond_signal(&request_finished);
        /* system processing */
        if (to_free != NULL) {
            pthread_mutex_unlock(&data_lock);
            backend.free(to_free);
            pthread_mutex_lock(&data_lock);
            busy = false;
            pthread_cond_broadcast(&idle);
        }
    }
    pthread_mutex_unlock(&data_lock);
}

static void pass_through_start(void)
{
}

static void pass_through_fork_prepare(void)
{
    pthread_mutex_lock(&request_lock);
    pthread_mutex_lock(&data_lock);
    while (busy)
        pthread_cond_wait(&idle, &data_lock);
}

static void pass_through_fork_parent(void)
{
    pthread_mutex_unlock(&data_lock);
    pthread_mutex_unlock(&request_lock);
}

/* Threads waited on these that the child does not have. */
static void pass_through_fork_child(void)
{
    request_ready = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    request_finished = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    data_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    request_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

const struct engine engine = {
    .name = "pass_through",
    .largest = PTRDIFF_MAX,
    .start = pass_through_start,
    .allocate = pass_through_allocate,
    .release = pass_through_release,
    .manage = pass_through_manage,
    .fork_prepare = pass_through_fork_prepare,
    .fork_parent = pass_through_fork_parent,
    .fork_child = pass_through_fork_child,
};
