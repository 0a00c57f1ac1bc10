/* SPDX-License-Identifier: MIT
 *
 * What large.c uses of mapping.c; everyone else includes large.h.
 */
#ifndef SUTLER_HEAP_MAPPING_H
#define SUTLER_HEAP_MAPPING_H

#include "base/compiler.h"

/* One that was freed, or NULL.  And whether there is one that may serve. */
void *mapping_take_kept(size_t size, size_t alignment);
bool mapping_is_kept(size_t size);
void *mapping_take(size_t size, size_t alignment, bool *zero);
/* One with the pages of `have` bytes of the region, which hold zeros from then on, and as many more as make `size`;
 * NULL (and nothing changed) if that cannot be done.  `is_fresh`: none were there when those were taken. */
void *mapping_take_pages(void *from, size_t have, size_t size, bool is_fresh);
void *mapping_resize(void *p, size_t size);

#ifdef SUTLER_HARDENED
struct mapping;
/* The block that is a mapping of its own at `p`; false if there is none.  May wait. */
bool mapping_look(const void *p, struct mapping *found);
/* What is known of one changes; false if there is none, or it is to be put into quarantine and was there already. */
bool mapping_note(const void *p, size_t usable, size_t slack, uint8_t family, bool is_quarantined);
#endif

#endif
