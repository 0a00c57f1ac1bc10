/* SPDX-License-Identifier: MIT
 *
 * The bug: freeing an address inside the heap's own address space that was never handed out: the far end of the
 * superblock or arena that a first block lies in, or the last block of the superblock.
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    const char *call = bug_call(argc, argv);
    size_t size = argc >= 4 ? strtoull(argv[3], NULL, 0) : 48, before_end = argc >= 4 ? size : 32;
    char *block = malloc(size);
    CHECK(block != NULL);
    char *far = (char *)(((uintptr_t)block | (bug_size(argc, argv, 64 * MIB) - 1)) + 1 - before_end);
    bug_expect(call, "invalid pointer", far, FOREIGN);
    bug_expect(call, "invalid pointer", far, INTERIOR);
    bug_expect(call, "double free", far, "block is already free");
    bug_pass(call, far);
    bug_survived();
    return 0;
}
