/* SPDX-License-Identifier: MIT
 *
 * The bug: a pointer to the last, or another, 64 KiB boundary inside memory that was freed: what a program has that
 * frees a part of a large block after the whole.
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    const char *call = bug_call(argc, argv);
    size_t slice = 64 * KIB, slices = 4, which = bug_size(argc, argv, slices - 1);
    char *before = malloc(200000), *block = malloc(slices * slice), *after = malloc(200000);
    CHECK(before != NULL && block != NULL && after != NULL);
    free(block);
    char *inside = block + which * slice;
    bug_expect(call, "double free", inside, "block is already free");
    bug_pass(call, inside);
    bug_survived();
    free(before);
    free(after);
    return 0;
}
