/* SPDX-License-Identifier: MIT
 *
 * MMT after many threads have come and gone: a loop needs about as many buckets and messages as before (four times as many
 * where the dead are counted when memory is shared out), and the server looks at the clients of those that live, and at the
 * few that it keeps warm.
 */
#include "engine_counts.h"
#include "support/proc.h"

#include <pthread.h>

#define THREADS 64
#define BLOCKS  400

static void *loop(void *rounds)
{
    static __thread void *blocks[BLOCKS];
    for (uintptr_t round = 0; round < (uintptr_t)rounds; round++) {
        for (size_t i = 0; i < BLOCKS; i++)
            blocks[i] = malloc(16 + i % 8 * 32);
        for (size_t i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    return NULL;
}

/* Of a loop long enough for the buckets to have settled. */
static uint64_t trips(void)
{
    uint64_t before = counted("messages") + counted("buckets");
    loop((void *)3000);
    return counted("messages") + counted("buckets") - before;
}

int main(void)
{
    pthread_t threads[THREADS];
    engine_begin(120);
    loop((void *)100);
    uint64_t before = trips();
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, loop, (void *)10) == 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    loop((void *)100);
    uint64_t attended = 0;
    for (int i = 0; i < 200 && (attended = counted("attended")) > 4; i++) {
        loop((void *)1);
        sleep_us(5000);
    }
    CHECK_MSG(attended >= 1 && attended <= 4, "the server looks at %lu clients", (unsigned long)attended);
    uint64_t after = trips();
    CHECK_MSG(after <= before + before / 10, "%lu messages and buckets before, %lu after", (unsigned long)before,
              (unsigned long)after);
    return 0;
}
