/* SPDX-License-Identifier: MIT
 *
 * The bug: freeing a number that is no pointer at all (small, misaligned, kernel half, non-canonical).
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    free(malloc(1));
    return bug_commit(bug_call(argc, argv), (void *)(uintptr_t)bug_size(argc, argv, 1), FOREIGN);
}
