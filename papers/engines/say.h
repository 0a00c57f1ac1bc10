/* SPDX-License-Identifier: MIT
 *
 * Why: what an engine is told by its user (environment variables) and tells him (lines on stderr), without allocating.
 * Any thread may call these.
 */
#ifndef ENGINES_SAY_H
#define ENGINES_SAY_H

#include "base.h"

const char *engine_option(const char *name); /* NULL: not set, empty, or not to be trusted */
void engine_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void engine_die(void);

#endif
