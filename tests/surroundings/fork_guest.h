/* SPDX-License-Identifier: MIT
 *
 * What fork_stdio.c knows of the library preloaded beside it, if it is.
 */
#ifndef TESTS_SURROUNDINGS_FORK_GUEST_H
#define TESTS_SURROUNDINGS_FORK_GUEST_H

#include <stdint.h>

/* Allocates while it holds what the handlers take. */
void fork_guest_use(void) __attribute__((weak));

/* Handlers run in this process so far. */
uint64_t fork_guest_calls(void) __attribute__((weak));

#endif
