/* SPDX-License-Identifier: MIT
 *
 * malloc_trim(pad) gives free memory back but for `pad` bytes of it, whatever it lies in: free blocks between live
 * ones, whole free spans, freed mappings; malloc_trim(0) gives back the rest.  Without a manager, who would give it
 * back himself.
 */
#include "support/family.h"
#include "support/proc.h"

#define COUNT 64

static void *block[COUNT * 1024];

/* Takes 64 MiB in pieces of this size, frees all but every `keep`th (0: all), and trims. */
static void trimmed(size_t size, size_t keep)
{
    const size_t count = COUNT * MIB / size, pad = 24 * MIB;
    malloc_trim(0);
    size_t empty = proc_resident_bytes();
    for (size_t i = 0; i < count; i++) {
        CHECK((block[i] = malloc(size)) != NULL);
        memset(block[i], 1, size);
    }
    for (size_t i = 0; i < count; i++)
        if (keep == 0 || i % keep != 0)
            free(block[i]);
    size_t freed = proc_resident_bytes();
    int padded_result = malloc_trim(pad);
    size_t padded = proc_resident_bytes();
    CHECK_MSG(malloc_trim(pad) == 0, "blocks of %zu: a second malloc_trim(pad) finds memory again", size);
    int result = malloc_trim(0);
    size_t all = proc_resident_bytes();
    test_say("blocks of %zu: %zu MiB at first, %zu freed, %zu trimmed but for the pad, %zu trimmed\n", size,
             empty / MIB, freed / MIB, padded / MIB, all / MIB);
    CHECK_MSG(result == 1 && padded - all >= pad - 2 * MIB, "blocks of %zu: the pad of %zu MiB was not kept", size,
              pad / MIB);
    CHECK_MSG(padded_result == 1 && freed - padded >= 12 * MIB, "blocks of %zu: all was kept", size);
    for (size_t i = 0; i < count && keep != 0; i += keep)
        free(block[i]);
}

int main(void)
{
    test_begin(60);
    if (!test_is_sutler())
        SKIP("glibc keeps the pad at the top of its heap only");
    trimmed(8 * KIB, 16);
    trimmed(1 * KIB, 0);
    trimmed(2 * MIB, 0);
    trimmed(20 * MIB, 0);
    return 0;
}
