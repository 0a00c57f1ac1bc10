/* SPDX-License-Identifier: MIT
 *
 * One size after another, and of each size one block in 200 stays.  What was freed between those blocks serves the next
 * sizes: memory does not grow by all of it each time.
 */
#include "support/family.h"
#include "support/proc.h"

#define TURN_BYTES (32 * MIB)
#define KEPT_PART 200
#define MOST_BLOCKS (TURN_BYTES / 1000 + 1)

int main(void)
{
    static const size_t sizes[] = {1000, 1400, 2000, 2700, 3800, 5400, 7000, 10000, 14000, 19000, 27000, 40000};
    static char *block[MOST_BLOCKS];
    test_begin(120);
    memset(block, 1, sizeof block); /* its pages are there */
    const size_t start = proc_resident_bytes(), turns = sizeof sizes / sizeof sizes[0];
    size_t most = 0, kept = 0;
    for (size_t turn = 0; turn < turns; turn++) {
        const size_t size = sizes[turn], count = TURN_BYTES / size;
        for (size_t i = 0; i < count; i++) {
            CHECK((block[i] = malloc(size)) != NULL);
            memset(block[i], (int)i, size);
        }
        const size_t resident = proc_resident_bytes() - start;
        most = resident > most ? resident : most;
        for (size_t i = 0; i < count; i++) {
            CHECK(block[i][0] == (char)i && block[i][size - 1] == (char)i);
            if (i % KEPT_PART == 0)
                kept += size;
            else
                free(block[i]);
        }
    }
    test_say("%zu sizes, %zu MiB of each: %zu MiB at most, %zu KiB stay\n", turns, TURN_BYTES / MIB, most / MIB,
             kept / KIB);
    CHECK_MSG(most <= 6 * TURN_BYTES, "%zu MiB are resident for %zu MiB", most / MIB, TURN_BYTES / MIB);
    return 0;
}
