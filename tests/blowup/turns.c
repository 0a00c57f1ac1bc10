/* SPDX-License-Identifier: MIT
 *
 * Large blocks and small ones by turns, never both at a time.  What the last turn freed has pages and lies in the other
 * arena (span.h): memory must not be taken for both.
 */
#include "support/family.h"
#include "support/proc.h"

#define TURN_BYTES  (40 * MIB)
#define LARGE_BYTES (3 * MIB / 2)
#define SMALL_BYTES 112u

static void *blocks[TURN_BYTES / SMALL_BYTES];

static void turn(size_t size)
{
    const size_t count = TURN_BYTES / size;
    for (size_t i = 0; i < count; i++) {
        CHECK((blocks[i] = malloc(size)) != NULL);
        memset(blocks[i], (int)i, size);
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

int main(void)
{
    test_begin(120);
    const size_t start = proc_resident_bytes();
    for (int i = 0; i < 6; i++) {
        turn(i % 2 == 0 ? LARGE_BYTES : SMALL_BYTES);
        size_t resident = proc_resident_bytes() - start;
        test_say("after turn %d: %zu MiB more than at first\n", i, resident / MIB);
        CHECK_MSG(resident <= TURN_BYTES * 3 / 2, "%zu MiB are resident for %zu MiB at a time", resident / MIB,
                  TURN_BYTES / MIB);
    }
    return 0;
}
