/* SPDX-License-Identifier: MIT
 *
 * A program that has filled a large block, and so gets huge pages for those to come, frees most of its buffers and goes
 * on working.  It never rests, and the gaps between those it keeps go back all the same.
 */
#include "support/family.h"
#include "support/proc.h"
#include <unistd.h>

#define BUFFERS 600u
#define BYTES   (300 * KIB)
#define KEPT    4u /* every fourth */

static char *buffer[BUFFERS];

static void work(void)
{
    void *block[500];
    for (unsigned i = 0; i < 500; i++)
        CHECK((block[i] = malloc(16 + i)) != NULL);
    for (unsigned i = 0; i < 500; i++)
        free(block[i]);
}

int main(void)
{
    test_begin(120);
    for (int i = 0; i < 2; i++) {
        char *first = malloc(16 * MIB);
        CHECK(first != NULL);
        memset(first, 1, 16 * MIB);
        free(first);
    }
    const size_t start = proc_resident_bytes(), live = BUFFERS / KEPT * BYTES;
    for (unsigned i = 0; i < BUFFERS; i++) {
        CHECK((buffer[i] = malloc(BYTES)) != NULL);
        memset(buffer[i], 1, BYTES);
    }
    for (unsigned i = 0; i < BUFFERS; i++)
        if (i % KEPT != 0)
            free(buffer[i]);
    size_t resident = SIZE_MAX;
    for (int i = 0; i < 20000 && resident > live + 32 * MIB; i++) {
        for (int k = 0; k < 20; k++)
            work();
        usleep(1000);
        resident = proc_resident_bytes();
        resident -= resident > start ? start : 0;
    }
    test_say("%zu MiB are resident for %zu MiB\n", resident / MIB, live / MIB);
    CHECK_MSG(resident <= live + 32 * MIB, "%zu MiB are resident for %zu MiB", resident / MIB, live / MIB);
    for (unsigned i = 0; i < BUFFERS; i += KEPT)
        free(buffer[i]);
    return 0;
}
