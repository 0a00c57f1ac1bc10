/* SPDX-License-Identifier: MIT
 *
 * What the library exports and musl's headers do not declare; included before everything else where libc is musl.
 */
#ifndef TESTS_MUSL_NAMES_H
#define TESTS_MUSL_NAMES_H

#include <stddef.h>

void *pvalloc(size_t size);
int malloc_trim(size_t pad);

#endif
