/* SPDX-License-Identifier: MIT
 *
 * Buffers that are filled and then cut to what they hold, which stays.  Of those cut to a third, what is cut off has to
 * serve the next buffer; of those cut to a half it is free, to be given back.
 */
#include "support/family.h"
#include "support/proc.h"
#include <malloc.h>

#define BUFFERS 100u

static char *kept[BUFFERS];

static void cut(size_t size, size_t to)
{
    const size_t start = proc_resident_bytes(), live = BUFFERS * to;
    for (unsigned i = 0; i < BUFFERS; i++) {
        CHECK((kept[i] = malloc(size)) != NULL);
        memset(kept[i], (int)i, size);
        CHECK((kept[i] = realloc(kept[i], to)) != NULL);
    }
    if (size <= 2 * to)
        malloc_trim(0);
    const size_t resident = proc_resident_bytes() - start;
    test_say("%zu KiB cut to %zu: %zu MiB are resident for %zu MiB\n", size / KIB, to / KIB, resident / MIB,
             live / MIB);
    CHECK_MSG(resident <= live * 3 / 2 + 4 * size, "%zu MiB are resident for %zu MiB", resident / MIB, live / MIB);
    for (unsigned i = 0; i < BUFFERS; i++) {
        for (size_t at = 0; at < to; at += 997)
            CHECK(kept[i][at] == (char)i);
        free(kept[i]);
    }
    malloc_trim(0); /* the next is to take its own */
}

int main(void)
{
    test_begin(120);
    cut(3 * MIB, 3 * MIB / 2);
    cut(500 * 1000, 500 * 1000 / 3);
    cut(1000 * 1000, 1000 * 1000 / 3);
    cut(3 * MIB, MIB);
    return 0;
}
