/* SPDX-License-Identifier: MIT
 *
 * The huge-page policy of large blocks: whether the program fills them.  Some do (buffers, vectors, matrices, arenas)
 * and gain by huge pages; others touch a few pages of each (sparse tables, arenas of other allocators) and would pay 2
 * MiB for every one.  So huge pages are asked for a large block only after one was seen to be full: when it was freed,
 * had to grow, or was followed by the next.  The last one seen counts, but for this: one not yet full when the next is
 * taken says nothing, it may still be filled.  A program may keep such blocks for ever, so a full one allows for some
 * times as many bytes, not for more.  With huge_pages=on they are asked for whatever was seen.
 * (docs/decisions/0008-huge-pages-for-what-is-filled.md)
 *
 * May be called from any thread.
 */
#ifndef SUTLER_HEAP_HUGE_POLICY_H
#define SUTLER_HEAP_HUGE_POLICY_H

#include <stddef.h>

#include "base/compiler.h"

/* Smaller blocks neither tell nor ask. */
#define HUGE_POLICY_BYTES_MIN ((size_t)1 << 20)

/* Whether blocks so large tell anything: not with huge_pages=on or off, nor where huge pages are of another size. */
bool huge_policy_tells(size_t bytes);

/* A block is about to be taken: has the last one been filled? */
void huge_policy_look_back(void);

/* This block was taken, and none of its pages are there.  `was_asked`: huge pages were asked for it, outside the
 * region. */
void huge_policy_note(const void *block, size_t bytes, bool was_asked);

/* Looks at a block none of whose pages were there when it was taken.  Up to `slack` bytes at its end the program may
 * not have asked for. */
void huge_policy_look(const void *block, size_t bytes, size_t slack, bool was_asked);

/* All of one is there, though maybe because little of it was touched (filling.h); and one was seen to be filled. */
void huge_policy_note_there(const void *block, size_t bytes);
void huge_policy_note_filled(size_t bytes);

/* Huge pages were asked for so many bytes, which may never be filled. */
void huge_policy_note_asked(size_t bytes);

/* Whether the next block is expected to be filled. */
bool huge_policy_expects_full(size_t bytes);
/* Whether to ask for huge pages for a block of so many bytes. */
bool huge_policy_asks(size_t bytes);

#endif
