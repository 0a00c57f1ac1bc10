/* SPDX-License-Identifier: MIT
 *
 * An ordinary program that asks for memory in every way, in threads and in a forked child, for `confined` to run.
 *   all_sorts [manager|alone]      it must have, or never have, a manager
 */
#include "all_sorts.h"
#include "support/proc.h"
#include <pthread.h>
#include <sys/wait.h>

#define THREADS 3

static bool is_helped(void)
{
    char text[8192];
    proc_read("/proc/self/status", text, sizeof text);
    const char *row = strstr(text, "\nThreads:");
    CHECK(row != NULL);
    return atoi(row + 9) > 1;
}

/* What one thread was given the next one frees. */
static void *_Atomic parcel[THREADS][500];

static void *work(void *argument)
{
    size_t own = (size_t)argument;
    for (size_t round = 0; round < 40; round++)
        for (size_t i = 0; i < 500; i++) {
            void *block = malloc(all_sorts_size(i + round));
            CHECK(block != NULL);
            *(char *)block = 1;
            free(__atomic_exchange_n(&parcel[round % 2 == 0 ? own : (own + 1) % THREADS][i], block, __ATOMIC_ACQ_REL));
        }
    all_sorts_once(4 * MIB);
    return NULL;
}

static void in_threads(void)
{
    pthread_t thread[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, work, (void *)i) == 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
}

static void in_child(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        all_sorts_once(ALL_SORTS_SMALL);
        in_threads();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MSG(status == 0, "the child ended with status %x", (unsigned)status);
}

int main(int argc, char **argv)
{
    test_begin(100);
    bool waits = argc > 1 && strcmp(argv[1], "manager") == 0, helped = false;
    struct all_sorts all = {0};
    all_sorts_grow(&all, ALL_SORTS_SMALL);
    for (int i = 0; i < (waits ? 40 : 2) && !helped; i++) {
        all_sorts_large();
        helped = is_helped();
        sleep_us(waits ? 20000 : 1000);
    }
    all_sorts_shrink(&all, 16);
    sleep_us(waits ? 1500000 : 1000); /* it looks, it gives back, it writes its page, it sleeps */
    all_sorts_once(ALL_SORTS_SMALL);
    in_threads();
    in_child();
    if (sutler_manager_park != NULL) {
        sutler_manager_park();
        sutler_manager_resume();
    }
    all_sorts_once(ALL_SORTS_SMALL);
    all_sorts_shrink(&all, 0);
    if (argc > 1)
        CHECK_MSG(helped == waits, waits ? "there was no manager" : "there was a manager");
    return 0;
}
