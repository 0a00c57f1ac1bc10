/* SPDX-License-Identifier: MIT
 *
 * Why: see say.h.
 */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *engine_option(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

void engine_say(const char *format, ...)
{
    char line[512];
    va_list list;
    int length = snprintf(line, sizeof line, "sutler: ");
    va_start(list, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, list);
    va_end(list);
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    ssize_t done = write(STDERR_FILENO, line, (size_t)length);
    (void)done;
}

void engine_die(void)
{
    abort();
}
