/* SPDX-License-Identifier: MIT
 *
 * Memory of the sweep's own, which says where kept blocks are and must not be taken for a pointer to them.
 */
#ifndef SUTLER_HARDENED_OWN_H
#define SUTLER_HARDENED_OWN_H

#include "os/memory.h"

/* Zeroed memory that is never given back, at least so many bytes; NULL without memory.  Any thread [signal]. */
void *own_map(size_t bytes);
/* Memory of others that is to be passed over as well. */
void own_note(const void *start, size_t bytes);

/* Whether there is room for more notes.  There is at the start; who may come often asks first.  Any thread [signal]. */
bool own_has_room(void);

/* This library's variables, where they are apart from the program's. */
void own_note_variables(void);

/* The first of these ranges that ends after `at`, as far as it is known; false if there is none. */
bool own_range_after(uintptr_t at, struct os_span *range);

#endif
