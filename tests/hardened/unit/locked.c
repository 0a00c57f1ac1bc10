/* SPDX-License-Identifier: MIT
 *
 * A large block of which a part is locked in memory is freed like any other: the system refuses to guard what is
 * locked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_BYTES  (80ul << 20)
#define LOCKED_BYTES (64ul << 10) /* any user may lock so much */

int main(void)
{
    for (int i = 0; i < 20; i++) {
        char *p = malloc(BLOCK_BYTES);
        if (p == NULL)
            return 1;
        memset(p, 7, BLOCK_BYTES);
        if (mlock(p + BLOCK_BYTES / 2, LOCKED_BYTES) != 0)
            return 77;
        free(p);
    }
    return 0;
}
