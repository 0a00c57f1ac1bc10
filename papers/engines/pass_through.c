/* SPDX-License-Identifier: MIT
 *
 * Why: the thesis's first attempt (6.1, figures 6.1-6.5), kept to measure what it measured: one round trip between
 * threads costs many times a malloc.  Every call becomes a message to the manager.  There is one message; the request
 * lock keeps other requests from disturbing it until it is answered, the data lock protects its fields, two condition
 * variables tell of a request and of its answer.  malloc is all request processing, nothing runs in parallel.  free is
 * answered as soon as the manager has noted the address (request processing); the backend's free comes after the signal
 * (system processing), when the program already runs on.
 *
 * The data lock is let go for the system processing, or the program could not return from its wait until that is over
 * and nothing would overlap; `busy` says that the manager is at it.
 *
 * fork: prepare counts up engine_forks and waits, under the request lock, until no message is under way and the manager
 * is not busy.  Whoever gets the request lock after that goes around (around.h), so the manager stays idle without
 * being held.
 */
#include "around.h"
#include "backend.h"
#include "counts.h"
#include "engine.h"
#include "manager.h"
#include "sync.h"

enum message_type { MESSAGE_MALLOC, MESSAGE_CALLOC, MESSAGE_FREE };
enum message_state { MESSAGE_NONE, MESSAGE_PLACED, MESSAGE_ANSWERED };

#define WAIT_MS 1000 /* so often a waiter looks around */

/* thesis figure 6.2 */
static struct {
    enum message_type type;
    size_t size;
    void *address;
    void *result;
    enum message_state state;
} message;

static struct mutex request_lock, data_lock;
static struct condition request_ready, request_finished, idle;
static bool busy;

static void *go_around(enum message_type type, size_t size, void *address)
{
    if (type == MESSAGE_MALLOC)
        return backend.malloc(size);
    if (type == MESSAGE_CALLOC)
        return backend.calloc(1, size);
    backend.free(address);
    return NULL;
}

/* thesis figures 6.3 and 6.4 */
static void *pass(enum message_type type, size_t size, void *address)
{
    if (!manager_ready())
        return go_around(type, size, address);
    mutex_lock(&request_lock);
    if (fork_is_under_way()) {
        mutex_unlock(&request_lock);
        return go_around(type, size, address);
    }
    mutex_lock(&data_lock);
    message.type = type;
    message.size = size;
    message.address = address;
    message.state = MESSAGE_PLACED;
    engine_count(&engine_counts.messages);
    condition_signal(&request_ready);
    while (message.state != MESSAGE_ANSWERED)
        condition_wait(&request_finished, &data_lock, WAIT_MS);
    void *result = message.result;
    message.state = MESSAGE_NONE;
    mutex_unlock(&data_lock);
    mutex_unlock(&request_lock);
    return result;
}

static void *pass_through_allocate(size_t size)
{
    return pass(MESSAGE_MALLOC, size, NULL);
}

static void *pass_through_allocate_zeroed(size_t size)
{
    return pass(MESSAGE_CALLOC, size, NULL);
}

static void pass_through_release(void *block)
{
    pass(MESSAGE_FREE, 0, block);
}

/* False: nobody is left to serve. */
static bool wait_for_request_locked(void)
{
    while (message.state != MESSAGE_PLACED) {
        condition_wait(&request_ready, &data_lock, WAIT_MS);
        if (message.state != MESSAGE_PLACED && manager_is_alone())
            return false;
    }
    return true;
}

/* thesis figure 6.5 */
static void pass_through_manage(void)
{
    mutex_lock(&data_lock);
    while (wait_for_request_locked()) {
        void *to_free = NULL;
        /* request processing */
        if (message.type == MESSAGE_FREE)
            to_free = message.address;
        else
            message.result = go_around(message.type, message.size, NULL);
        message.state = MESSAGE_ANSWERED;
        busy = to_free != NULL;
        condition_signal(&request_finished);
        /* system processing */
        if (to_free != NULL) {
            mutex_unlock(&data_lock);
            backend.free(to_free);
            mutex_lock(&data_lock);
            busy = false;
            condition_broadcast(&idle);
        }
    }
    mutex_unlock(&data_lock);
}

static void nothing(void)
{
}

static void pass_through_fork_prepare(void)
{
    mutex_lock(&request_lock);
    mutex_lock(&data_lock);
    while (busy)
        condition_wait(&idle, &data_lock, WAIT_MS);
    mutex_unlock(&data_lock);
    mutex_unlock(&request_lock);
}

/* Threads held and waited on these that the child does not have. */
static void pass_through_fork_child(void)
{
    request_lock = data_lock = (struct mutex){0};
    request_ready = request_finished = idle = (struct condition){0};
}

const struct engine engine = {
    .name = "pass_through",
    .largest = PTRDIFF_MAX,
    .start = nothing,
    .allocate = pass_through_allocate,
    .allocate_zeroed = pass_through_allocate_zeroed,
    .release = pass_through_release,
    .manage = pass_through_manage,
    .fork_prepare = pass_through_fork_prepare,
    .fork_parent = nothing,
    .fork_child = pass_through_fork_child,
};
