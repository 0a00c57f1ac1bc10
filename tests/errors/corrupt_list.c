/* SPDX-License-Identifier: MIT
 *
 * The bug: writing to blocks after free, over the link that a free list keeps in them.  Purge walks the lists before it
 * gives pages back, so it must find the damage, report it, and keep the superblock (quarantine): the bytes of live
 * blocks around it stay.  The program is given the value to write: a wild number or "live", the address of a live
 * block.
 */
#include "errors/bug.h"

#define COUNT 20000
#define SIZE  64

int main(int argc, char **argv)
{
    const char *value = argc >= 2 ? argv[1] : "0x4141414141414141";
    static unsigned char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        CHECK((blocks[i] = malloc(SIZE)) != NULL);
        pattern_fill(blocks[i], SIZE, i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 100 != 0)
            free(blocks[i]);
    }
    uintptr_t wild = strcmp(value, "live") == 0 ? (uintptr_t)blocks[COUNT / 2] : (uintptr_t)strtoull(value, NULL, 0);
    for (size_t i = COUNT / 2 - 1500; i < COUNT / 2 + 1500; i += 7) {
        if (i % 100 != 0)
            memcpy(opaque(blocks[i]), &wild, sizeof wild);
    }
    test_say("expect-pattern: sutler: \\w+\\(\\): corrupted free list in superblock 0x[0-9a-f]+ \\(.+\\)\n");
    malloc_trim(0);
    /* Reached only when reports do not abort: what lives is intact, purged or not. */
    for (size_t i = 0; i < COUNT; i += 100)
        pattern_verify(blocks[i], SIZE, i);
    malloc_trim(0);
    for (size_t i = 0; i < COUNT; i += 100)
        pattern_verify(blocks[i], SIZE, i);
    bug_survived();
    return 0;
}
