/* SPDX-License-Identifier: MIT
 *
 * Why: see sync.h.
 */
#include "sync.h"
#include "counts.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void futex_wait(uint32_t *word, uint32_t value, long ms)
{
    struct timespec limit = {ms / 1000, ms % 1000 * 1000000};
    int saved = errno;
    engine_count(&engine_counts.sleeps);
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
    errno = saved;
}

void futex_wake(uint32_t *word, int threads)
{
    int saved = errno;
    engine_count(&engine_counts.wakes);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
    errno = saved;
}

void mutex_lock(struct mutex *mutex)
{
    uint32_t open = 0;
    if (LIKELY(__atomic_compare_exchange_n(&mutex->state, &open, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        return;
    engine_count(&engine_counts.lock_waits);
    while (__atomic_exchange_n(&mutex->state, 2, __ATOMIC_ACQUIRE) != 0)
        futex_wait(&mutex->state, 2, 1000);
}

void mutex_unlock(struct mutex *mutex)
{
    if (UNLIKELY(__atomic_exchange_n(&mutex->state, 0, __ATOMIC_RELEASE) == 2))
        futex_wake(&mutex->state, 1);
}

void condition_wait(struct condition *condition, struct mutex *mutex, long ms)
{
    uint32_t turn = condition->turn;
    condition->waiters++;
    mutex_unlock(mutex);
    futex_wait(&condition->turn, turn, ms);
    mutex_lock(mutex);
    condition->waiters--;
}

static void wake(struct condition *condition, int threads)
{
    if (condition->waiters == 0)
        return;
    STORE_RELAXED(&condition->turn, condition->turn + 1);
    futex_wake(&condition->turn, threads);
}

void condition_signal(struct condition *condition)
{
    wake(condition, 1);
}

void condition_broadcast(struct condition *condition)
{
    wake(condition, INT_MAX);
}

bool semaphore_try(struct semaphore *semaphore)
{
    uint32_t value = LOAD(&semaphore->value);
    while (value > 0) {
        if (__atomic_compare_exchange_n(&semaphore->value, &value, value - 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

/* A waiter counts itself before it looks at the value again (in the kernel); a poster adds to the value before it looks
 * for waiters. */
bool semaphore_wait(struct semaphore *semaphore, long ms)
{
    if (semaphore_try(semaphore))
        return true;
    __atomic_fetch_add(&semaphore->waiters, 1, __ATOMIC_SEQ_CST);
    futex_wait(&semaphore->value, 0, ms);
    __atomic_fetch_sub(&semaphore->waiters, 1, __ATOMIC_SEQ_CST);
    return semaphore_try(semaphore);
}

void semaphore_post(struct semaphore *semaphore)
{
    __atomic_fetch_add(&semaphore->value, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&semaphore->waiters, __ATOMIC_SEQ_CST) != 0)
        futex_wake(&semaphore->value, 1);
}
