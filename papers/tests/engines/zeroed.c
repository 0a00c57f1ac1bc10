/* SPDX-License-Identifier: MIT
 *
 * calloc of a gibibyte is new memory from the system, which is zero: an engine must not touch it.
 */
#include "engine.h"
#include "support/proc.h"

int main(void)
{
    const size_t size = (size_t)1 << 30;
    engine_begin(60);
    free(malloc(1));
    size_t before = proc_resident_bytes();
    unsigned char *block = calloc(1, size);
    CHECK(block != NULL);
    size_t after = proc_resident_bytes();
    CHECK_MSG(after < before + 8 * MIB, "resident: %zu KiB before, %zu after", before / KIB, after / KIB);
    CHECK(block[0] == 0 && block[size / 3] == 0 && block[size - 1] == 0);
    free(block);
    return 0;
}
