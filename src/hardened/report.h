/* SPDX-License-Identifier: MIT
 *
 * What the hardened library says of a bug: one line, as the plain library does; with SUTLER_REPORT=long more.
 */
#ifndef SUTLER_HARDENED_REPORT_H
#define SUTLER_HARDENED_REPORT_H

#include "hardened/hardened.h"

/* There is no live block at `p`: it was freed, or never was one. */
void report_not_live(const char *function, const void *p);
void report_overflow(const char *function, const void *p);
/* A freed block was found to be written to. */
void report_written(const char *function, const void *p);
void report_wrong_size(const char *function, const void *p, size_t size, size_t claimed);
void report_family(const char *function, const void *p, enum family family, enum family claimed);

#endif
