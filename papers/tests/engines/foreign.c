/* SPDX-License-Identifier: MIT
 *
 * A library like many: a lock of its own, and fork handlers around it, registered by its constructor.  It allocates
 * before, so that the malloc library's own handlers are older than these; an engine's are younger.
 */
#include "foreign.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void (*foreign_prepare)(void);

void foreign_lock(void)
{
    pthread_mutex_lock(&lock);
}

void foreign_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void prepare(void)
{
    foreign_lock();
    if (foreign_prepare != NULL)
        foreign_prepare();
}

static __attribute__((constructor)) void register_handlers(void)
{
    free(malloc(100));
    if (pthread_atfork(prepare, foreign_unlock, foreign_unlock) != 0)
        abort();
}
