/* SPDX-License-Identifier: MIT
 *
 * See foreign.c.
 */
#ifndef TESTS_ENGINES_FOREIGN_H
#define TESTS_ENGINES_FOREIGN_H

extern void (*foreign_prepare)(void); /* called by its prepare handler, with the lock; may be NULL */
void foreign_lock(void);
void foreign_unlock(void);

#endif
