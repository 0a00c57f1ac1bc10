/* SPDX-License-Identifier: MIT
 *
 * A program started without address space randomization (setarch -R, debuggers) finds its blocks where they were last
 * time; one started with finds them elsewhere.
 */
#include "again.h"
#include <sys/mman.h>
#include <sys/personality.h>

static void **seen; /* shared with the children */

static void without(void)
{
    personality(ADDR_NO_RANDOMIZE);
}

static void *block_of(void (*prepare)(void))
{
    char word[32];
    int fd = memfd_create("seen", 0);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(seen != MAP_FAILED);
    snprintf(word, sizeof word, "%d", fd);
    CHECK(again(prepare, word) == 0);
    void *block = *seen;
    munmap(seen, 4096);
    close(fd);
    return block;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
        CHECK(seen != MAP_FAILED);
        *seen = malloc(100);
        return 0;
    }
    test_begin(60);
    if (personality(0xffffffff) == -1 || personality(ADDR_NO_RANDOMIZE) == -1)
        SKIP("personality is not to be had");
    personality(0);
    void *first = block_of(without);
    for (int i = 0; i < 4; i++)
        CHECK_MSG(block_of(without) == first, "without randomization, blocks are elsewhere each time");
    char setting[8] = "";
    FILE *file = fopen("/proc/sys/kernel/randomize_va_space", "r");
    if (file == NULL || fgets(setting, sizeof setting, file) == NULL || setting[0] == '0')
        SKIP("this machine does not randomize addresses");
    int others = 0;
    for (int i = 0; i < 4; i++)
        others += block_of(NULL) != first;
    CHECK_MSG(others >= 3 || !test_is_sutler(), "with randomization, blocks are where they are without");
    return 0;
}
