/* SPDX-License-Identifier: MIT
 *
 * The rseq area of each thread: libc's, or one of the library's own where libc is older than glibc 2.35 and knows of no
 * such thing.  Those are built only with such a libc.
 *
 * A thread that has not registered its own area finds SLOT_MAX in it for a cid.  There is an empty heap there, so that
 * its first malloc or free takes a slow path, which registers it (sync_slot).
 */
#ifndef SUTLER_RCS_AREA_H
#define SUTLER_RCS_AREA_H

#include <stdbool.h>
#include <stddef.h>

/* glibc 2.35 and later say where they registered each thread's area, and how long it is: 0 if they were told not to. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* True if they are there.  Then nobody else is to register one. */
bool area_is_of_libc(void);

/* Registers the calling thread's own.  False if the system refuses, which it does where another library has registered
 * one, or might not like to be asked; and in a build without. */
bool area_register(void);

/* In a child of the child of a vfork, for which the system keeps no area: registers the thread's again, whoever's it
 * is.  If it is refused the thread finds SLOT_MAX in it from now on. */
bool area_register_again(void);

/* Of the library's own, from the thread pointer. */
ptrdiff_t area_offset(void);

#endif
