/* SPDX-License-Identifier: MIT
 *
 * Why: the C library's functions that return a block call malloc and so arrive in the engine by themselves.  Not so
 * when the backend is a library preloaded after it that brings versions of its own: mimalloc has strdup, strndup and
 * (2.x) realpath, which allocate past the engine.  The block is the backend's either way, so nothing breaks; but the
 * checks (checks.c) have not seen it and would take its free for one of a wild pointer.  So they are defined here,
 * over the engine's malloc.  A path longer than PATH_MAX is ENAMETOOLONG, where glibc's realpath may return it.
 */
#include "base.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static char *copy(const char *text, size_t length)
{
    char *block = malloc(length + 1);
    if (block == NULL)
        return NULL;
    memcpy(block, text, length);
    block[length] = '\0';
    return block;
}

EXPORT char *strdup(const char *text)
{
    return copy(text, strlen(text));
}

EXPORT char *strndup(const char *text, size_t most)
{
    return copy(text, strnlen(text, most));
}

EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
    static char *(*next)(const char *, char *);
    char buffer[PATH_MAX];
    if (LOAD_RELAXED(&next) == NULL)
        STORE_RELAXED(&next, (char *(*)(const char *, char *))(uintptr_t)dlsym(RTLD_NEXT, "realpath"));
    if (resolved != NULL)
        return LOAD_RELAXED(&next)(path, resolved);
    char *found = LOAD_RELAXED(&next)(path, buffer);
    return found != NULL ? copy(found, strlen(found)) : NULL;
}
