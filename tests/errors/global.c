/* SPDX-License-Identifier: MIT
 *
 * The bug: freeing a static object.
 */
#include "errors/bug.h"

static _Alignas(64) char object[4096];

int main(int argc, char **argv)
{
    free(malloc(1));
    return bug_commit(bug_call(argc, argv), object, FOREIGN);
}
