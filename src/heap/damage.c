/* SPDX-License-Identifier: MIT */
#include "heap/heap.h"

#include <stdlib.h>

#include "options/options.h"
#include "os/errors.h"

void damage_report(const char *function, const char *where, const void *start, const char *reason)
{
    struct line line = LINE_EMPTY;
    line_add(&line, "sutler: %s(): corrupted free list %s %p (%s)\n", function, where, start, reason);
    error_tell(&line);
    if (option_get(option_on_error) == on_error_abort)
        abort();
}

bool superblock_quarantine_if(const char *damage, struct superblock *s, const char *function)
{
    if (likely(damage == NULL))
        return false;
    slice_become(&s->slice, slice_quarantine);
    damage_report(function, "in superblock", superblock_start(s), damage);
    return true;
}
