/* SPDX-License-Identifier: MIT
 *
 * The bug: another thread frees a block twice in a row.  The block travels through the remote list of its owner, which
 * is another path with its own check.  The first thread keeps its cpu busy meanwhile, so that the second surely runs
 * with another concurrency id and its frees are surely remote (where there are two cpus).
 */
#include "errors/bug.h"
#include "support/proc.h"
#include <pthread.h>

static volatile int started, done;

static void *other(void *block)
{
    started = 1;
    sleep_us(2000); /* the first thread is running by now */
    free(malloc(64));
    free(block);
    free(opaque(block));
    done = 1;
    return NULL;
}

int main(int argc, char **argv)
{
    size_t size = bug_size(argc, argv, 100);
    char *keep = malloc(size), *block = malloc(size);
    CHECK(keep != NULL && block != NULL);
    block[0] = 1;
    bug_expect("free", "double free", block, "block is already free");
    if (size > 32 * KIB)
        bug_expect("free", "invalid pointer", block, FOREIGN);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, other, block) == 0);
    while (!started || !done)
        continue;
    CHECK(pthread_join(thread, NULL) == 0);
    bug_survived();
    free(keep);
    return 0;
}
