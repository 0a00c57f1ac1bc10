/* SPDX-License-Identifier: MIT
 *
 * The program that gdb single-steps: between begin() and end() it mallocs and frees, and prints the sum of what it read
 * back.  Every step is a trap that aborts a restartable section, so a section that only retries would never end.
 */
#include "support/family.h"
#include "support/pattern.h"

__attribute__((noinline)) void begin(void);
__attribute__((noinline)) void end(void);

__attribute__((noinline)) void begin(void)
{
    __asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) void end(void)
{
    __asm__ volatile("" : : : "memory");
}

int main(void)
{
    test_begin(0);
    unsigned char *blocks[8];
    for (size_t i = 0; i < 8; i++) /* warm: what is stepped is the fast path */
        blocks[i] = malloc(100);
    for (size_t i = 0; i < 8; i++)
        free(blocks[i]);
    begin();
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < 8; i++) {
            blocks[i] = opaque(malloc(100));
            CHECK(blocks[i] != NULL);
            blocks[i][0] = (unsigned char)i;
        }
        for (size_t i = 0; i < 8; i++) {
            CHECK(blocks[i][0] == i);
            free(blocks[i]);
        }
    }
    end();
    test_say("stepped to the end\n");
    return 0;
}
