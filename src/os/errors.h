/* SPDX-License-Identifier: MIT
 *
 * Where errors are told: to the program's hook (sutler_report_to), or to the file that SUTLER_REPORT_FILE names, or,
 * where there is neither or it cannot be opened, to standard error.  Warnings at the start are no errors; they go to
 * standard error.
 */
#ifndef SUTLER_OS_ERRORS_H
#define SUTLER_OS_ERRORS_H

#include "os/line.h"

typedef void error_hook(const char *text, size_t length);

/* Writes a line, or some, and empties it.  Any thread, whatever it holds [signal]. */
void error_tell(struct line *line);

/* NULL: no hook.  One caller at a time. */
void error_to_hook(error_hook *hook);
/* Remembers a copy of the path; false if it is too long.  At the start. */
bool error_to_file(const char *path);
/* From here on nobody but error_to_hook can change where errors go. */
void error_seal(void);

#endif
