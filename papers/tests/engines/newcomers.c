/* SPDX-License-Identifier: MIT
 *
 * Forks while threads begin, over a malloc (unhandled.c) that locks when a thread comes to it for the first time, or
 * always, and has no fork handlers.  Each child begins threads: the engine's, and one of its own.  Blocks are small:
 * large ones are the backend's business at any time.
 */
#include "fork/heap.h"

#include "engine.h"

static void *newcomer(void *argument)
{
    void *blocks[20];
    for (size_t i = 0; i < 20; i++) {
        blocks[i] = malloc(100 * (i + 1));
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, 100 * (i + 1));
    }
    for (size_t i = 0; i < 20; i++)
        free(blocks[i]);
    return argument;
}

static void *beginner(void *argument)
{
    while (!churn_stop) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, newcomer, argument) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    engine_begin(300);
    uint64_t forks = test_option(argc, argv, "--forks", 100);
    pthread_t threads[2];
    newcomer(NULL);
    sleep_us(200000); /* the engine has its second thread */
    for (uintptr_t i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, beginner, (void *)i) == 0);
    for (uint64_t i = 0; i < forks; i++) {
        newcomer(NULL);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            engine_watchdog(20);
            newcomer(NULL);
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, newcomer, NULL) == 0 && pthread_join(thread, NULL) == 0);
            _exit(0);
        }
        child_reap(child);
    }
    churn_stop = 1;
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
