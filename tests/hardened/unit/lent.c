/* SPDX-License-Identifier: MIT
 *
 * A superblock that has lent slices: what others have there is none of its blocks, and the audit must not look behind
 * them as if they were.  Linked with the archive, so that the audit can be called; its report would end this program.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

bool audit_run(uint64_t budget_ns);

#define MIB        ((size_t)1 << 20)
#define LIMIT      (64 * MIB)
#define SMALL      1000u
#define KEPT_EVERY 1000u /* superblocks keep some slices, and lend the others */
#define LARGE      2000u

enum { BLOCKS = LIMIT / SMALL };
static void *small[BLOCKS], *large[BLOCKS];

static size_t take_all(void **block, size_t size)
{
    size_t count = 0;
    while (count < BLOCKS && (block[count] = malloc(size)) != NULL)
        memset(block[count++], 0x5a, size);
    return count;
}

static bool is_full(size_t taken)
{
    return taken > 100 && taken < BLOCKS;
}

int main(void)
{
    const struct rlimit limit = {LIMIT, LIMIT};
    setrlimit(RLIMIT_AS, &limit);
    const size_t smalls = take_all(small, SMALL);
    for (size_t i = 0; i < smalls; i++)
        if (i % KEPT_EVERY != 0)
            free(small[i]);
    const size_t larges = take_all(large, LARGE);
    if (!is_full(smalls) || !is_full(larges)) {
        fprintf(stderr, "FAILED: %zu and %zu blocks\n", smalls, larges);
        return 1;
    }
    audit_run(UINT64_MAX / 2);
    return 0;
}
