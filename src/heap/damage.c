/* SPDX-License-Identifier: MIT */
#include "heap/heap.h"

#include <stdlib.h>

#include "options/options.h"
#include "os/errors.h"

void damage_report(const char *function, const struct superblock *s, const char *reason)
{
    struct line line = LINE_EMPTY;
    line_text(&line, "sutler: ");
    line_text(&line, function);
    line_text(&line, "(): corrupted free list in superblock ");
    line_hex(&line, (uintptr_t)superblock_start(s));
    line_text(&line, " (");
    line_text(&line, reason);
    line_text(&line, ")\n");
    error_tell(&line);
    if (option_get(option_on_error) == on_error_abort)
        abort();
}

bool superblock_quarantine_if(const char *damage, struct superblock *s, const char *function)
{
    if (likely(damage == NULL))
        return false;
    slice_become(&s->slice, slice_quarantine);
    damage_report(function, s, damage);
    return true;
}
