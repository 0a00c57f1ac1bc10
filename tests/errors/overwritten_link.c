/* SPDX-License-Identifier: MIT
 *
 * The bug: one write to a block just freed, then allocations of its class.  The default build has no check on its fast
 * path, so a report, a death by SIGSEGV and survival are all allowed; memory that overlaps a live block is not, unless
 * the forged link itself names it.
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    size_t size = bug_size(argc, argv, 100);
    enum { COUNT = 200 };
    static unsigned char *blocks[COUNT];
    shadow_create();
    for (size_t i = 0; i < COUNT; i++) {
        CHECK((blocks[i] = malloc(size)) != NULL);
        pattern_fill(blocks[i], size, i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 2 == 0)
            shadow_claim(blocks[i], malloc_usable_size(blocks[i]));
        else
            free(blocks[i]);
    }
    uintptr_t wild = (uintptr_t)strtoull(argc >= 2 ? argv[1] : "0x4141414141414141", NULL, 0);
    memcpy(opaque(blocks[101]), &wild, sizeof wild);
    for (size_t i = 1; i < COUNT; i += 2) {
        CHECK((blocks[i] = malloc(size)) != NULL);
        shadow_claim(blocks[i], malloc_usable_size(blocks[i]));
        pattern_fill(blocks[i], size, i);
    }
    for (size_t i = 0; i < COUNT; i++)
        pattern_verify(blocks[i], size, i);
    test_say("survived\n");
    return 0;
}
