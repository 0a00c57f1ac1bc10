/* SPDX-License-Identifier: MIT
 *
 * mallinfo2 beside a thread that takes and frees gigabytes: its figures are taken one after the other and need not
 * agree, but none may be a difference that went below zero.
 */
#include "support/check.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#define ABSURD ((size_t)1 << 46)

static _Atomic bool stop;

static void *take_and_free(void *unused)
{
    while (!stop) {
        void *volatile p = malloc((size_t)3 << 30);
        free(p);
    }
    return unused;
}

int main(int argc, char **argv)
{
    test_begin(100);
    uint64_t rounds = test_option(argc, argv, "--rounds", 300000);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, take_and_free, NULL) == 0);
    for (uint64_t i = 0; i < rounds; i++) {
        struct mallinfo2 info = mallinfo2();
        CHECK_MSG(info.arena < ABSURD && info.uordblks < ABSURD && info.fordblks < ABSURD,
                  "arena %zu, uordblks %zu, fordblks %zu", info.arena, info.uordblks, info.fordblks);
    }
    stop = true;
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
