/* SPDX-License-Identifier: MIT
 *
 * A thread with the smallest stack the system allows trims the heap, and allocates until there is no memory: the long
 * ways, which purge on the thread's own stack.
 */
#include "support/check.h"
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

#define KEPT 6000

static void *kept[KEPT];

/* Superblocks of many classes, partly free. */
static void scatter(void)
{
    for (size_t i = 0; i < KEPT; i++) {
        CHECK((kept[i] = malloc(40 + i)) != NULL);
        memset(kept[i], 1, 40 + i);
    }
    for (size_t i = 0; i < KEPT; i++)
        if (i % 7 != 0)
            free(kept[i]);
}

static void *trim(void *unused)
{
    malloc_trim(0);
    return unused;
}

static void *exhaust(void *unused)
{
    const struct rlimit limit = {96 * MIB, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    void **first = NULL;
    for (void **p; (p = malloc(3000)) != NULL; first = p)
        *p = first;
    CHECK(errno == ENOMEM);
    for (void **next; first != NULL; first = next) {
        next = *first;
        free(first);
    }
    return unused;
}

static void on_small_stack(void *(*run)(void *))
{
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0);
    CHECK(pthread_create(&thread, &attributes, run, NULL) == 0 && pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attributes);
}

int main(void)
{
    test_begin(60);
    scatter();
    on_small_stack(trim);
    scatter();
    on_small_stack(exhaust);
    return 0;
}
