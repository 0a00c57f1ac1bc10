/* SPDX-License-Identifier: MIT
 *
 * The library without preload: linked as a shared object, as libsutler.a into a dynamic program, and into a wholly
 * static one.  Run without LD_PRELOAD; the one question is whether every member of the family reaches the library (a
 * block of one must be accepted by the free of another, and be counted by the statistics).
 */
#include "support/family.h"
#include <pthread.h>
#include <sys/wait.h>

static void *thread_main(void *argument)
{
    for (int i = 0; i < 10000; i++)
        free(malloc((size_t)(i % 3000)));
    free(argument);
    return malloc(500);
}

int main(void)
{
    test_watchdog(60);
    CHECK_MSG(test_is_sutler(), "linked with the library, but it does not serve malloc");
    struct sutler_stats before, after;
    CHECK(sutler_stats_get(&before, sizeof before) == 0);
    void *blocks[12];
    int count = 0;
    blocks[count++] = malloc(100);
    blocks[count++] = calloc(3, 40);
    blocks[count++] = realloc(NULL, 300);
    blocks[count++] = reallocarray(NULL, 4, 100);
    blocks[count++] = memalign(64, 100);
    blocks[count++] = aligned_alloc(128, 128);
    blocks[count++] = valloc(100);
    blocks[count++] = pvalloc(100);
    CHECK(posix_memalign(&blocks[count++], 4096, 10) == 0);
    blocks[count++] = strdup("a string that the C library allocates");
    CHECK(sutler_stats_get(&after, sizeof after) == 0);
    CHECK_MSG(after.live_blocks >= before.live_blocks + (size_t)count, "%zu of %d blocks are counted",
              after.live_blocks - before.live_blocks, count);
    for (int i = 0; i < count; i++) {
        CHECK(blocks[i] != NULL && malloc_usable_size(blocks[i]) >= 10);
        free(blocks[i]);
    }
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, thread_main, malloc(64)) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result != NULL);
        free(result);
    }
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        free(malloc(1000));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
