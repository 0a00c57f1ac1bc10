/* SPDX-License-Identifier: MIT
 *
 * The bug: a double free with one other free in between.  The default build catches it only where it can see it (best
 * effort), so both are right: the report, or going on.  What must not happen is that the same block is handed out twice
 * while its first owner still has it; a silent double hand-out is printed as "doubled", which the runner takes as a
 * known limit of the default build only where it is told so.
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    const char *call = bug_call(argc, argv);
    size_t size = bug_size(argc, argv, 100);
    char *first = malloc(size), *second = malloc(size), *keep = malloc(size);
    CHECK(first != NULL && second != NULL && keep != NULL);
    bug_expect(call, "double free", first, "block is already free");
    free(first);
    free(second);
    bug_pass(call, first);
    enum { COUNT = 64 };
    char *blocks[COUNT];
    bool doubled = false;
    for (int i = 0; i < COUNT; i++) {
        CHECK((blocks[i] = malloc(size)) != NULL);
        for (int k = 0; k < i; k++)
            doubled |= blocks[k] == blocks[i];
        CHECK_MSG(blocks[i] != keep, "a live block was handed out");
    }
    test_say(doubled ? "doubled\n" : "survived\n");
    return 0;
}
