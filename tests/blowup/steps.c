/* SPDX-License-Identifier: MIT
 *
 * Large arrays that grow in turn, a twentieth at a time, are in each other's way.  They are copied at some of the
 * steps, not at each, and have little more memory than they need.
 */
#include "support/family.h"
#include "support/proc.h"

#define ARRAYS 8u
#define FIRST (200 * KIB)
#define LAST (8 * MIB)

static char *array[ARRAYS];

int main(void)
{
    test_begin(120);
    const size_t start = proc_resident_bytes();
    size_t size = FIRST, steps = 0, moves = 0;
    for (unsigned i = 0; i < ARRAYS; i++) {
        CHECK((array[i] = malloc(size)) != NULL);
        memset(array[i], (int)i, size);
    }
    for (; size < LAST; steps++) {
        const size_t more = size / 20;
        for (unsigned i = 0; i < ARRAYS; i++) {
            char *grown = realloc(array[i], size + more);
            CHECK(grown != NULL);
            moves += grown != array[i];
            array[i] = grown;
            memset(grown + size, (int)i, more);
        }
        size += more;
    }
    const size_t resident = proc_resident_bytes() - start, live = ARRAYS * size;
    test_say("%zu steps, %zu moves of %u arrays; %zu MiB resident for %zu\n", steps, moves, ARRAYS, resident / MIB,
             live / MIB);
    CHECK_MSG(moves <= steps * ARRAYS / 3, "%zu moves in %zu steps of %u arrays", moves, steps, ARRAYS);
    CHECK_MSG(resident <= live * 5 / 2, "%zu MiB are resident for %zu MiB", resident / MIB, live / MIB);
    for (unsigned i = 0; i < ARRAYS; i++) {
        for (size_t at = 0; at < size; at += 997)
            CHECK(array[i][at] == (char)i);
        free(array[i]);
    }
    return 0;
}
