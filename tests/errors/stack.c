/* SPDX-License-Identifier: MIT
 *
 * The bug: freeing an object on the stack.
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    _Alignas(64) char object[64] = {0};
    free(malloc(1));
    return bug_commit(bug_call(argc, argv), object, FOREIGN);
}
