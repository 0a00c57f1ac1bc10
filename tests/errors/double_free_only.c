/* SPDX-License-Identifier: MIT
 *
 * The bug: the only block of its class freed twice in a row, so that the first free leaves its superblock (or span)
 * entirely empty: it may already be on its way back when the second call comes.
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    const char *call = bug_call(argc, argv);
    char *block = malloc(bug_size(argc, argv, 100));
    CHECK(block != NULL);
    block[0] = 1;
    bug_expect(call, "double free", block, "block is already free");
    bug_expect(call, "invalid pointer", block, FOREIGN);
    free(block);
    bug_pass(call, block);
    bug_survived();
    return 0;
}
