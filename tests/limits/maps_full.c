/* SPDX-License-Identifier: MIT
 *
 * The kernel refuses to unmap what would split a mapping in two when the process has as many mappings as it may have.
 * A large block freed then must not stay resident for ever.
 */
#include "support/proc.h"
#include <sys/mman.h>

#define BLOCKS 5
#define BLOCK (100 * MIB)

/* Uses up the mappings: every other page of a range is made another kind. */
static void fill_up(void)
{
    const size_t pages = 200000;
    char *range = mmap(NULL, pages * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(range != MAP_FAILED);
    for (size_t i = 0; i < pages; i += 2)
        if (mprotect(range + i * 4096, 4096, PROT_READ) != 0)
            return;
    SKIP("there may be more than %zu mappings here", pages);
}

int main(void)
{
    test_begin(100);
    char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        CHECK((block[i] = malloc(BLOCK)) != NULL);
        memset(block[i], 1, i == BLOCKS / 2 ? BLOCK : 1);
    }
    fill_up();
    size_t before = proc_resident_bytes();
    free(block[BLOCKS / 2]); /* between others: one mapping to the kernel */
    size_t after = proc_resident_bytes();
    CHECK_MSG(after + BLOCK / 2 < before, "%zu MiB resident before, %zu after a free of 100 MiB", before / MIB,
              after / MIB);
    for (int i = 0; i < BLOCKS; i++)
        if (i != BLOCKS / 2)
            free(block[i]);
    return 0;
}
