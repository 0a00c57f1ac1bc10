/* SPDX-License-Identifier: MIT */
#ifndef TESTS_GLIBC_XTHREAD_H
#define TESTS_GLIBC_XTHREAD_H

#include "support/check.h"

#include <pthread.h>
#include <signal.h>

static inline void test_need_zero(int error, const char *what)
{
    if (error != 0)
        FAIL_EXIT1("%s is refused: %s", what, strerror(error));
}

#define TEST_NEED_ZERO(call)                   test_need_zero(call, #call)
#define xpthread_barrier_init(one, with, many) TEST_NEED_ZERO(pthread_barrier_init(one, with, many))
#define xpthread_barrier_destroy(one)          TEST_NEED_ZERO(pthread_barrier_destroy(one))
#define xpthread_barrierattr_init(one)         TEST_NEED_ZERO(pthread_barrierattr_init(one))
#define xpthread_barrierattr_destroy(one)      TEST_NEED_ZERO(pthread_barrierattr_destroy(one))
#define xpthread_barrierattr_setpshared(one, shared) TEST_NEED_ZERO(pthread_barrierattr_setpshared(one, shared))
#define xpthread_kill(thread, number)          TEST_NEED_ZERO(pthread_kill(thread, number))
#define xpthread_cancel(thread)                TEST_NEED_ZERO(pthread_cancel(thread))
#define xpthread_mutex_lock(one)               TEST_NEED_ZERO(pthread_mutex_lock(one))
#define xpthread_mutex_unlock(one)             TEST_NEED_ZERO(pthread_mutex_unlock(one))
#define xpthread_detach(thread)                TEST_NEED_ZERO(pthread_detach(thread))
#define xpthread_attr_init(one)                TEST_NEED_ZERO(pthread_attr_init(one))
#define xpthread_attr_destroy(one)             TEST_NEED_ZERO(pthread_attr_destroy(one))
#define xpthread_attr_setstacksize(one, bytes) TEST_NEED_ZERO(pthread_attr_setstacksize(one, bytes))
#define xpthread_attr_setdetachstate(one, how) TEST_NEED_ZERO(pthread_attr_setdetachstate(one, how))

static inline int xpthread_barrier_wait(pthread_barrier_t *barrier)
{
    int result = pthread_barrier_wait(barrier);
    if (result != 0 && result != PTHREAD_BARRIER_SERIAL_THREAD)
        FAIL_EXIT1("pthread_barrier_wait is refused: %s", strerror(result));
    return result == PTHREAD_BARRIER_SERIAL_THREAD;
}

static inline pthread_t xpthread_create(const pthread_attr_t *with, void *(*function)(void *), void *argument)
{
    pthread_t thread;
    TEST_NEED_ZERO(pthread_create(&thread, with, function, argument));
    return thread;
}

static inline void *xpthread_join(pthread_t thread)
{
    void *result;
    TEST_NEED_ZERO(pthread_join(thread, &result));
    return result;
}

#endif
