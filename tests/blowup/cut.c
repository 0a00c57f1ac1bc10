/* SPDX-License-Identifier: MIT
 *
 * Buffers that are filled and then cut to what they hold, a third, which stays: what is cut off has to serve the next
 * buffer.
 */
#include "support/family.h"
#include "support/proc.h"

#define BUFFERS 100u
#define KEPT_PART 3u

static char *kept[BUFFERS];

static void cut(size_t size)
{
    const size_t start = proc_resident_bytes(), live = BUFFERS * (size / KEPT_PART);
    for (unsigned i = 0; i < BUFFERS; i++) {
        CHECK((kept[i] = malloc(size)) != NULL);
        memset(kept[i], (int)i, size);
        CHECK((kept[i] = realloc(kept[i], size / KEPT_PART)) != NULL);
    }
    const size_t resident = proc_resident_bytes() - start;
    test_say("%zu KiB cut to a third: %zu MiB are resident for %zu MiB\n", size / KIB, resident / MIB, live / MIB);
    CHECK_MSG(resident <= live * 3 / 2 + 4 * size, "%zu MiB are resident for %zu MiB", resident / MIB, live / MIB);
    for (unsigned i = 0; i < BUFFERS; i++) {
        for (size_t at = 0; at < size / KEPT_PART; at += 997)
            CHECK(kept[i][at] == (char)i);
        free(kept[i]);
    }
}

int main(void)
{
    test_begin(120);
    cut(500 * 1000);
    cut(1000 * 1000);
    cut(3 * MIB);
    return 0;
}
