/* SPDX-License-Identifier: MIT
 *
 * One thread resizes a block in place while another frees it, with SUTLER_ON_ERROR=report.  One of them may be told
 * that it came too late; if neither is, the block is free: never live and in quarantine at once.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 20000u
#define SPINS  5000u /* before a thread leaves the processor to the other one */
#define DELAYS 40u   /* the one that frees is later by so many looks, at most */

static _Atomic unsigned reports, arrived;
static void *_Atomic block;

static void hear(const char *text, size_t length)
{
    (void)text, (void)length;
    atomic_fetch_add(&reports, 1);
}

static void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    _exit(1);
}

/* Both threads are there, for the `count`th time. */
static void meet(unsigned count)
{
    atomic_fetch_add(&arrived, 1);
    for (unsigned i = 0; atomic_load(&arrived) < 2 * count; i++)
        if (i >= SPINS)
            sched_yield();
}

static void *free_them(void *unused)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        meet(2 * i + 1);
        for (unsigned delay = 0; delay < i % DELAYS; delay++)
            atomic_load(&block);
        free(atomic_load(&block));
        meet(2 * i + 2);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    void (*report_to)(void (*)(const char *, size_t)) =
        (void (*)(void (*)(const char *, size_t)))dlsym(RTLD_DEFAULT, "sutler_report_to");
    if (report_to == NULL)
        fail("there is no sutler_report_to");
    report_to(hear);
    pthread_create(&thread, NULL, free_them, NULL);
    for (unsigned i = 0; i < ROUNDS; i++) {
        char *p = malloc(100);
        atomic_store(&block, p);
        atomic_store(&reports, 0);
        meet(2 * i + 1);
        void *q = realloc(p, 101);
        meet(2 * i + 2);
        const bool was_reported = atomic_load(&reports) != 0;
        const bool is_live = malloc_usable_size(p) != 0;
        if (is_live && (!was_reported || q != p))
            fail("a block was freed, and is live");
        if (is_live)
            free(p);
    }
    pthread_join(thread, NULL);
    return 0;
}
