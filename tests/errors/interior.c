/* SPDX-License-Identifier: MIT
 *
 * The bug: freeing a pointer into the middle of a block, `delta` bytes from its start.
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    const char *call = bug_call(argc, argv);
    size_t size = bug_size(argc, argv, 100);
    size_t delta = argc >= 4 ? (size_t)strtoull(argv[3], NULL, 0) : 16;
    /* Neighbours on both sides: the pointer is inside a superblock in use, not at the edge of the heap. */
    char *before = malloc(size), *block = malloc(size), *after = malloc(size);
    CHECK(before != NULL && block != NULL && after != NULL);
    pattern_fill_sparse(block, size, 1);
    if (size > 32 * MIB) /* a mapping of its own: the library knows its start and nothing else of it */
        bug_expect(call, "invalid pointer", block + delta, FOREIGN);
    bug_commit(call, block + delta, INTERIOR);
    pattern_verify_sparse(block, size, size, 1);
    free(block);
    free(before);
    free(after);
    return 0;
}
