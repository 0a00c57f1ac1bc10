/* SPDX-License-Identifier: MIT
 *
 * What large.c uses of mapping.c; everyone else includes large.h.
 */
#ifndef SUTLER_HEAP_MAPPING_H
#define SUTLER_HEAP_MAPPING_H

#include "base/compiler.h"

struct large_counts;

void *mapping_take(size_t size, size_t alignment, bool *zero);
void *mapping_resize(void *p, size_t size);
void mapping_count(struct large_counts *counts);

#endif
