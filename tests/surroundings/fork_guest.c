/* SPDX-License-Identifier: MIT
 *
 * A library whose constructor registers handlers for fork that take its lock, allocate, free and print: in prepare, in
 * the parent and in the child.  Registered before the allocator's own handlers, its prepare runs after theirs, when an
 * allocator may hold locks already; and a thread that holds this library's lock may be waiting for one of them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "surroundings/fork_guest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *null;
static uint64_t calls;

static void allocate(void)
{
    void *blocks[12];
    for (size_t i = 0; i < 12; i++) {
        blocks[i] = malloc((size_t)64 << i);
        if (blocks[i] == NULL)
            abort();
        memset(blocks[i], 1, 64);
    }
    for (size_t i = 0; i < 12; i++)
        free(blocks[i]);
}

static void print(void)
{
    char *text = NULL;
    if (asprintf(&text, "%1000d", 1) != 1000 || fprintf(null, "%s\n", text) != 1001 || fflush(null) != 0)
        abort();
    free(text);
}

static void prepare(void)
{
    pthread_mutex_lock(&lock);
    allocate();
    print();
    calls++;
}

static void parent(void)
{
    print();
    allocate();
    calls++;
    pthread_mutex_unlock(&lock);
}

static void child(void)
{
    allocate();
    print();
    pthread_mutex_unlock(&lock);
}

void fork_guest_use(void)
{
    pthread_mutex_lock(&lock);
    allocate();
    print();
    pthread_mutex_unlock(&lock);
}

uint64_t fork_guest_calls(void)
{
    return calls;
}

static __attribute__((constructor)) void load(void)
{
    null = fopen("/dev/null", "w");
    if (null == NULL || pthread_atfork(prepare, parent, child) != 0)
        abort();
}
