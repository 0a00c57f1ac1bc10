/* SPDX-License-Identifier: MIT
 *
 * Programs with one bug each (the argument names it), for the checking layer: expect_checks.py says what must come of
 * it. --drain makes the program go on with honest work after the bug, until a server that checks later has seen it.
 */
#include "engine.h"

#include <malloc.h>

static void honest_work(void)
{
    for (size_t i = 0; i < 20000; i++) {
        char *block = malloc(10 + i % 300);
        CHECK(block != NULL);
        block[0] = 1;
        free(opaque(block));
    }
    usleep(300000);
}

static void check_filled(int value)
{
    static unsigned char *blocks[2000];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 2000; i++) {
            size_t size = 16 + i % 490;
            blocks[i] = malloc(size);
            CHECK(blocks[i] != NULL);
            for (size_t at = 0; at < size; at++)
                CHECK_MSG(blocks[i][at] == value, "byte %zu of a new block of %zu is 0x%x", at, size, blocks[i][at]);
            memset(blocks[i], 0x55, size);
        }
        for (size_t i = 0; i < 2000; i++)
            free(blocks[i]);
    }
}

int main(int argc, char **argv)
{
    engine_begin(120);
    CHECK(argc >= 2);
    const char *bug = argv[1];
    char *block = opaque(malloc(100)), *other = opaque(malloc(100));
    static char area[256] __attribute__((aligned(16)));
    if (strcmp(bug, "double_free") == 0) {
        free(block);
        free(opaque(block));
    } else if (strcmp(bug, "wild") == 0) {
        free(opaque(area + 64));
    } else if (strcmp(bug, "interior") == 0) {
        free(opaque(block + 16));
    } else if (strcmp(bug, "realloc_wild") == 0) {
        block = realloc(opaque(area + 64), 10);
    } else if (strcmp(bug, "zeros") == 0) {
        check_filled(0);
    } else if (strcmp(bug, "junk") == 0) {
        check_filled(0xd0);
    } else if (strcmp(bug, "freed_is_junk") == 0) {
        memset(block, 1, 100);
        free(opaque(block));
        for (int i = 40; i < 100; i++) /* the backend may have written its links at the start */
            CHECK_MSG(((unsigned char *)opaque(block))[i] == 0xd0, "byte %d of a freed block was kept", i);
    } else {
        CHECK_MSG(strcmp(bug, "none") == 0, "no bug '%s'", bug);
    }
    if (argc >= 3)
        honest_work();
    free(other);
    test_say("survived\n");
    return 0;
}
