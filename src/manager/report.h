/* SPDX-License-Identifier: MIT
 *
 * The page the report job writes (report.c).
 */
#ifndef SUTLER_MANAGER_REPORT_H
#define SUTLER_MANAGER_REPORT_H

#include "sutler/sutler.h"

/* Makes the page, and lets it go; by the manager thread. */
void report_open(void);
void report_close(void);
/* In a forked child. */
void report_forget(void);

#endif
