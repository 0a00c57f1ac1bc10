/* SPDX-License-Identifier: MIT
 *
 * Why: the malloc library below an engine, and the area that serves before there is one (backend.c).
 */
#ifndef ENGINES_BACKEND_H
#define ENGINES_BACKEND_H

#include "base.h"

/* What one library below looks like.  With SUTLER_CHECKS=offloaded these are the checking versions (checks.c). */
struct backend {
    void *(*malloc)(size_t size);
    void (*free)(void *block);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *block, size_t size);
    int (*posix_memalign)(void **result, size_t alignment, size_t size);
    size_t (*usable)(void *block);
};
extern struct backend backend;

/* Finds the library for the engine of this name; `over` may put a layer around it.  The first caller opens; whoever
 * comes while it does (usually itself, from within the loader) finds it not open yet. */
void backend_open(const char *engine_name, struct backend (*over)(struct backend found));
bool backend_is_open(void);

void *early_allocate(size_t alignment, size_t size); /* zero, never reused; NULL: none left */
bool early_owns(const void *block);
size_t early_size(const void *block);

#endif
