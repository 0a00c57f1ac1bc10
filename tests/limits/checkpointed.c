/* SPDX-License-Identifier: MIT
 *
 * The program of gdb_checkpoint.py: a heap large enough for the manager to be there if it may, a stop, and then blocks
 * filled and looked at; so that it can be gone through twice, once in the checkpoint.
 */
#include "support/family.h"
#include "support/pattern.h"
#include <sys/stat.h>

enum { BLOCKS = 20000 };
static unsigned char *blocks[BLOCKS];

__attribute__((noinline)) void grown(void);

__attribute__((noinline)) void grown(void)
{
    __asm__ volatile("" : : : "memory");
}

/* A folder has two links and one for each folder in it. */
static bool is_alone(void)
{
    struct stat status;
    return stat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
}

static void fill(size_t from)
{
    for (size_t i = from; i < BLOCKS; i += 2) {
        free(blocks[i]);
        blocks[i] = malloc(1500 + i % 1000);
        CHECK(blocks[i] != NULL);
        pattern_fill(blocks[i], 1500 + i % 1000, i);
    }
}

int main(void)
{
    test_begin(0);
    fill(0);
    fill(1);
    const char *manager = getenv("SUTLER_MANAGER");
    for (int i = 0; i < 1000 && strcmp(manager, "on") == 0 && is_alone(); i++) {
        fill((size_t)i % 2);
        usleep(10000);
    }
    grown();
    fill(0);
    fill(1);
    for (size_t i = 0; i < BLOCKS; i++)
        pattern_verify(blocks[i], 1500 + i % 1000, i);
    test_say("gone through to the end\n");
    return 0;
}
