/* SPDX-License-Identifier: MIT */
#include "heap/clear.h"

#include <string.h>

#include "base/bits.h"
#include "heap/huge.h"
#include "heap/region.h"
#include "os/hooks.h"
#include "os/os.h"

/* Shorter ones are cleared in the time it takes to ask. */
#define LOOK_BYTES_MIN ((size_t)1 << 20)
/* More than one page in so many there: to give them back and have them anew would take longer. */
#define FEW_PART 4

/* To ask for all pages takes a tenth of the time to clear them, so two are asked for before.  False where it is not
 * known. */
static bool has_few_pages(char *piece, size_t bytes)
{
    if (os_is_resident(piece + bytes / 2) && os_is_resident(piece + bytes - 1))
        return false;
    return huge_count_there(piece, bytes) <= bytes / os_page_bytes / FEW_PART;
}

/* What is not there may have been swapped out, so all of a piece is given back. */
static void clear_piece(char *piece, size_t bytes)
{
    if (os_is_hooked() || !has_few_pages(piece, bytes)) /* it is being taken */
        return (void)memset(piece, 0, bytes);
    huge_note_purged(piece, bytes);
    if (!os_purge(piece, bytes))
        memset(piece, 0, bytes);
}

void *large_clear(void *block, size_t bytes)
{
    if (bytes < LOOK_BYTES_MIN || (uintptr_t)block % os_page_bytes != 0)
        return memset(block, 0, bytes);
    char *end = (char *)block + align_down(bytes, os_page_bytes), *next;
    for (char *at = block; at < end; at = next) {
        next = (char *)align_down((uintptr_t)at + HUGE_PAGE_BYTES, HUGE_PAGE_BYTES);
        next = next < end ? next : end;
        clear_piece(at, (size_t)(next - at));
    }
    memset(end, 0, bytes % os_page_bytes); /* not the page: in the hardened library a canary may follow */
    return block;
}
