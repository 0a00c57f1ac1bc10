/* SPDX-License-Identifier: MIT
 *
 * What large.c uses of mapping.c; everyone else includes large.h.
 */
#ifndef SUTLER_HEAP_MAPPING_H
#define SUTLER_HEAP_MAPPING_H

#include "base/compiler.h"

/* One that was freed, or NULL. */
void *mapping_take_kept(size_t size, size_t alignment);
void *mapping_take(size_t size, size_t alignment, bool *zero);
void *mapping_resize(void *p, size_t size);

#ifdef SUTLER_HARDENED
struct mapping;
/* The block that is a mapping of its own at `p`; false if there is none.  May wait. */
bool mapping_look(const void *p, struct mapping *found);
/* What is known of one changes; false if there is none, or it is to be put into quarantine and was there already. */
bool mapping_note(const void *p, size_t slack, uint8_t family, bool is_quarantined);
#endif

#endif
