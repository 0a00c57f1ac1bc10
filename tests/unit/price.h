/* SPDX-License-Identifier: MIT
 *
 * What huge pages cost (heap/huge_price.h), as a test says and however long they take on this machine.
 */
#ifndef TESTS_UNIT_PRICE_H
#define TESTS_UNIT_PRICE_H

#include <stdbool.h>

extern bool price_is_fair; /* true unless a test says otherwise */

#endif
