/* SPDX-License-Identifier: MIT
 *
 * See foreign.c.
 */
#ifndef TESTS_ENGINES_FOREIGN_H
#define TESTS_ENGINES_FOREIGN_H

void foreign_lock(void);
void foreign_unlock(void);

#endif
