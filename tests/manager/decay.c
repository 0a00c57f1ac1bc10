/* SPDX-License-Identifier: MIT
 *
 * Where there is no manager, a program that goes on allocating gets rid of what it has freed: most of it is no longer
 * resident some rounds later.  It makes few calls, as a server does that has little to do: a request a millisecond,
 * which builds something, in a buffer that grows, and drops it.
 */
#include "support/check.h"
#include "support/proc.h"
#include "support/rng.h"
#include <time.h>

#define BYTES (64 * MIB)
#define KEEP_EVERY 1000
#define REQUEST_BYTES (200 * KIB)
#define DEADLINE_S 90

static void *hoard[1 << 20];

static time_t seconds(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec;
}

static void *filled(size_t size)
{
    void *block = malloc(size);
    CHECK(block != NULL);
    return memset(block, 1, size);
}

static void serve(struct rng *rng, size_t least, size_t most)
{
    void **block = NULL;
    size_t count = 0, room = 0;
    for (size_t bytes = 0, size; bytes < REQUEST_BYTES; bytes += size) {
        if (count == room)
            CHECK((block = realloc(block, (room = 2 * room + 4) * sizeof *block)) != NULL);
        block[count++] = filled(size = least + rng_below(rng, most - least));
    }
    while (count > 0)
        free(block[--count]);
    free(block);
    sleep_us(1000);
}

static void goes_back(struct rng *rng, size_t least, size_t most)
{
    size_t count = 0;
    for (size_t bytes = 0; bytes < BYTES; count++) {
        size_t size = least + rng_below(rng, most - least);
        CHECK(count < sizeof hoard / sizeof *hoard);
        hoard[count] = filled(size);
        bytes += size;
    }
    size_t full = proc_resident_bytes();
    CHECK(full >= BYTES);
    for (size_t i = 0; i < count; i++)
        if (i % KEEP_EVERY != 0)
            free(hoard[i]);
    time_t since = seconds();
    while (proc_resident_bytes() > full - BYTES / 2) {
        CHECK_MSG(seconds() - since < DEADLINE_S, "%zu to %zu bytes: of %zu KiB %zu are still resident", least, most,
                  full >> 10, proc_resident_bytes() >> 10);
        serve(rng, least, most);
    }
    printf("%zu to %zu bytes: %zu MiB at most, %zu after %ld s\n", least, most, full >> 20,
           proc_resident_bytes() >> 20, (long)(seconds() - since));
    for (size_t i = 0; i < count; i += KEEP_EVERY)
        free(hoard[i]);
}

int main(void)
{
    struct rng rng = {1};
    memset(hoard, 1, sizeof hoard);
    goes_back(&rng, 16, 1000);
    goes_back(&rng, 1000, 12000);
    return 0;
}
