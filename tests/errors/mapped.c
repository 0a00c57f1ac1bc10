/* SPDX-License-Identifier: MIT
 *
 * The bug: freeing memory that mmap gave.
 */
#include "errors/bug.h"

int main(int argc, char **argv)
{
    free(malloc(1));
    char *map = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    return bug_commit(bug_call(argc, argv), map + 64, FOREIGN);
}
