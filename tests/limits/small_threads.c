/* SPDX-License-Identifier: MIT
 *
 * A small program with a few threads in a small address space (started under ulimit -v): each thread has a few blocks
 * of every size up to 128 KiB.  What it has is little; what an allocator opens for it must not be a multiple.
 */
#include "support/check.h"
#include "support/pattern.h"
#include <pthread.h>

enum { THREADS = 3, SIZES = 60 };

static size_t size_of(int i)
{
    size_t size = 16;
    for (; i >= 4; i -= 4)
        size *= 2;
    return (size + size * (size_t)i / 4) % (128 * KIB);
}

static void *work(void *argument)
{
    uint64_t tag = (uintptr_t)argument;
    static unsigned char *block[THREADS][SIZES];
    unsigned char **own = block[tag];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < SIZES; i++) {
            own[i] = malloc(size_of(i));
            CHECK_MSG(own[i] != NULL, "no %zu bytes, in round %d of thread %d", size_of(i), round, (int)tag);
            pattern_fill(own[i], size_of(i), tag);
        }
        for (int i = 0; i < SIZES; i++) {
            pattern_verify(own[i], size_of(i), tag);
            free(own[i]);
        }
    }
    return NULL;
}

int main(void)
{
    test_begin(60);
    pthread_t thread[THREADS];
    pthread_attr_t small;
    CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 256 * KIB) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_MSG(pthread_create(&thread[i], &small, work, (void *)i) == 0, "no thread %d", (int)i);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    return 0;
}
