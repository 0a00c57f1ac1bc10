/* SPDX-License-Identifier: MIT
 *
 * Test programs are linked against this where libc is musl, so that these names wait for the preloaded library, which
 * comes before.
 */
#include "names.h"

#include <stdlib.h>

void *pvalloc(size_t size)
{
    (void)size;
    abort();
}

int malloc_trim(size_t pad)
{
    (void)pad;
    abort();
}
