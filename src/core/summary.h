/* SPDX-License-Identifier: MIT
 *
 * The report on the heap: on request, and at exit if SUTLER_STATS asks for it.
 */
#ifndef SUTLER_CORE_SUMMARY_H
#define SUTLER_CORE_SUMMARY_H

#include "base/compiler.h"

/* Statistics and the facts that are words: version, sync mode and why. */
void summary_write(int fd, bool json);

#endif
