/* SPDX-License-Identifier: MIT
 *
 * Whether the program fills its large blocks.  Some do (buffers, vectors, matrices) and gain by huge pages; others
 * touch a few pages of each (sparse tables, arenas of other allocators) and would pay 2 MiB for every one.  So huge
 * pages are asked for a large block only after one was seen to be full: when it was freed, or had to grow.  The last
 * one seen counts.  (docs/decisions/0008-huge-pages-for-what-is-filled.md)
 *
 * May be called from any thread.
 */
#ifndef SUTLER_HEAP_FILLING_H
#define SUTLER_HEAP_FILLING_H

#include <stddef.h>

#include "base/compiler.h"

/* Looks at a block none of whose pages were there when it was taken.  Up to `slack` bytes at its end the program may
 * not have asked for. */
void filling_look(const void *block, size_t bytes, size_t slack);

/* Whether to ask for huge pages for a block of so many bytes. */
bool filling_expected(size_t bytes);

#endif
