/* SPDX-License-Identifier: MIT */
#ifndef TESTS_GLIBC_TEMP_FILE_H
#define TESTS_GLIBC_TEMP_FILE_H

#include "support/support.h"

/* In the folder that the runner made and deletes; the name is the caller's to free. */
static inline int create_temp_file(const char *base, char **name)
{
    char *made = xasprintf("./%s.XXXXXX", base);
    int descriptor = mkstemp(made);
    if (name != NULL && descriptor >= 0)
        *name = made;
    else
        free(made);
    return descriptor;
}

static inline void add_temp_file(const char *name)
{
    (void)name;
}

#endif
