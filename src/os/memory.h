/* SPDX-License-Identifier: MIT
 *
 * The process's own memory as the system sees it: which mappings there are, which of their pages hold anything of their
 * own, and what is in them, read without a risk: a page that cannot be read is an answer, not a signal.
 *
 * All within need_begins(need_plain) (filter.h).
 */
#ifndef SUTLER_OS_MEMORY_H
#define SUTLER_OS_MEMORY_H

#include "base/compiler.h"

/* Whether the code that calls it lies in a shared library of its own; false if it is a part of the program. */
bool os_is_shared_library(void);

struct os_span {
    uintptr_t start, end;
};

struct os_mapping {
    struct os_span span;
    bool is_writable;
    bool is_anonymous; /* else who cuts the file short takes pages away */
};

/* Calls `visit` with every readable private mapping but the system's own ([vvar] and the like), in the order of their
 * addresses, until it returns false.  False if the list cannot be read to its end, was cut short,
 * or is not this process's. */
typedef bool os_visit_mapping(void *context, struct os_mapping mapping);
bool os_mappings_each(os_visit_mapping *visit, void *context);

/* ---- which pages are written to: Linux 6.7, by asynchronous write protection of a userfaultfd ----
 *
 * One at a time.  The system lifts the protection of a page by itself when it is written to; nobody is told, nobody
 * waits for anybody. */

/* False: it cannot be had. */
bool os_track_begin(void);
/* From here on it is known which pages of the mapping are written to.  False: not of this one. */
bool os_track_mapping(struct os_span mapping);
/* Everything is as before. */
void os_track_end(void);

/* ---- pages ---- */

/* Closes what os_pages_open (os.h) opened for os_pages_find. */
void os_pages_close(long pages);

enum os_pages {
    os_pages_all,
    os_pages_tracked, /* those of a mapping that is tracked: and their writes are looked for from here on */
    os_pages_written, /* those written to since, of a mapping that is tracked, and the same; of others all */
};
struct os_pages_range {
    struct os_span span;
    bool is_there; /* in memory, not swapped out or guarded */
};
/* Which pages from *at on, before `end`, all of one mapping, are the process's own: in memory or swapped out, not (any
 * more) those of a file, and not the page of zeros.  Of a mapping that was looked at so before, os_pages_tracked and
 * os_pages_written find only those written to since.  Fills in at most `most` ranges, of OS_PAGES_MOST bytes in all
 * where pages are tracked, and sets *at to where the next search goes on.  Returns how many, or -1. */
#define OS_PAGES_MOST ((size_t)1 << 20)
int os_pages_find(long pages, enum os_pages which, uintptr_t *at, uintptr_t end, struct os_pages_range *found,
                  unsigned most);

/* Lifts the calling thread's protection keys: from here on it can read all memory whose mapping can be read. */
struct os_keys {
    bool are_there;
    uint32_t rights;
};
struct os_keys os_keys_open(void);
void os_keys_restore(struct os_keys before);
/* False: it cannot be told whether there are any, and os_keys_open does nothing. */
bool os_keys_are_known(void);

/* Copies bytes of the process's own memory; returns how many could be read up to the first that could not, or -1 if the
 * system allows it not at all. */
long os_memory_read(void *to, uintptr_t from, size_t bytes);

#endif
