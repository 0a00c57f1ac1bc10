/* SPDX-License-Identifier: MIT
 *
 * MMT after many threads have come and gone: a loop needs about as many buckets and messages as before (four times as
 * many where the dead are counted when memory is shared out) and asks for at most one block a bucket, and the server
 * looks at the clients of those that live, and at the few that it keeps warm.
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

struct need {
    uint64_t buckets, messages;
};

/* What a loop needs, long enough for the buckets to have settled. */
static struct need need(void)
{
    struct need before = {counted("buckets"), counted("messages")};
    loop((void *)3000);
    return (struct need){counted("buckets") - before.buckets, counted("messages") - before.messages};
}

int main(void)
{
    pthread_t threads[THREADS];
    engine_begin(120);
    loop((void *)100);
    struct need before = need();
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
    struct need after = need();
    CHECK_MSG(after.buckets <= before.buckets + before.buckets / 10, "%lu buckets before, %lu after",
              (unsigned long)before.buckets, (unsigned long)after.buckets);
    const uint64_t trips_before = before.buckets + before.messages, trips_after = after.buckets + after.messages;
    CHECK_MSG(trips_after <= trips_before + trips_before / 10, "%lu messages and buckets before, %lu after",
              (unsigned long)trips_before, (unsigned long)trips_after);
    CHECK_MSG(after.messages <= after.buckets, "%lu messages for %lu buckets", (unsigned long)after.messages,
              (unsigned long)after.buckets);
    return 0;
}
