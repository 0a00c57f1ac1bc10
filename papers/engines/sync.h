/* SPDX-License-Identifier: MIT
 *
 * Why: a mutex, a condition and a semaphore that sleep, for the designs that the papers build from Pthread's.  They are
 * made as the C library's are (a word in user space, the kernel asked only by who has to wait or has somebody to wake;
 * no spinning).  They are our own because each call of the kernel is to be counted (counts.h), because none of these
 * waits may be a cancellation point (malloc is none), and because a forked child gets them back by storing zeros.
 *
 * Fork: no wait here is longer than LOOK_MS, so that who waits sees that a fork is under way (around.h).
 */
#ifndef ENGINES_SYNC_H
#define ENGINES_SYNC_H

#include "base.h"

#define LOOK_MS 5

void futex_wait(uint32_t *word, uint32_t value, long ms); /* one call of the kernel; may return early */
void futex_wake(uint32_t *word, int threads);

struct mutex {
    uint32_t state; /* 0 open, 1 held, 2 held and somebody may sleep */
};

void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);

/* All with the mutex held.  A wait may end without a reason; it ends after `ms` at the latest. */
struct condition {
    uint32_t turn, waiters;
};

void condition_wait(struct condition *condition, struct mutex *mutex, long ms);
void condition_signal(struct condition *condition);
void condition_broadcast(struct condition *condition);

struct semaphore {
    uint32_t value, waiters;
};

bool semaphore_try(struct semaphore *semaphore);
bool semaphore_wait(struct semaphore *semaphore, long ms); /* false: not within that time */
void semaphore_post(struct semaphore *semaphore);

#endif
