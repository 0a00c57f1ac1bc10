/* SPDX-License-Identifier: MIT
 *
 * The bug: the same block freed twice in a row, in every region of sizes.  Always caught.  A block that was a mapping
 * of its own may be gone by the second call, and is then foreign.
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    const char *call = bug_call(argc, argv);
    size_t size = bug_size(argc, argv, 100);
    char *keep = malloc(size);
    char *block = malloc(size);
    CHECK(keep != NULL && block != NULL);
    pattern_fill_sparse(keep, size, 1);
    block[0] = 1;
    bug_expect(call, "double free", block, "block is already free");
    if (size > 32 * KIB)
        bug_expect(call, "invalid pointer", block, FOREIGN);
    free(block);
    bug_pass(call, block);
    bug_survived();
    pattern_verify_sparse(keep, size, size, 1);
    free(keep);
    return 0;
}
