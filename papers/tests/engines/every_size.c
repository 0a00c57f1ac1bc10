/* SPDX-License-Identifier: MIT
 *
 * Three blocks of every size up to 512, as a program may use many sizes and few blocks of each.  Says its peak of resident
 * memory, as the programs of bench/ do, for footprint.py.
 */
#include "support/proc.h"

int main(void)
{
    static unsigned char *blocks[3][513];
    for (size_t round = 0; round < 3; round++) {
        for (size_t size = 1; size <= 512; size++) {
            blocks[round][size] = malloc(size);
            CHECK(blocks[round][size] != NULL);
            memset(blocks[round][size], (int)size, size);
        }
    }
    test_say("name=every_size peak_rss_kib=%zu\n", proc_status_bytes("VmHWM:") / KIB);
    return 0;
}
