/* SPDX-License-Identifier: MIT
 *
 * Why: what both libraries over libm's functions share (libm.c predicts, log.c records): the table's numbers, a
 * function's number as a word of bits, and the way to the original.  `next_NAME` is the original of NAME; before the
 * first call it is a stand-in that looks all of them up.  Numbers are moved as bits, never converted: a signalling NaN
 * stays what it is.
 */
#ifndef PREDICT_WRAPPED_H
#define PREDICT_WRAPPED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bits.h"
#include "predict.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define EXPORT    __attribute__((visibility("default")))

enum {
#define UNARY(name, type)  FUNCTION_##name,
#define BINARY(name, type) FUNCTION_##name,
#define PAIR(name, type)   FUNCTION_##name,
#include "functions.def"
#undef UNARY
#undef BINARY
#undef PAIR
    FUNCTION_COUNT
};

static void find_originals(void);

#define UNARY(name, type)                                                                                              \
    static type first_##name(type x);                                                                                  \
    static type (*next_##name)(type) = first_##name;                                                                   \
    static type first_##name(type x)                                                                                   \
    {                                                                                                                  \
        find_originals();                                                                                              \
        return next_##name(x);                                                                                         \
    }
#define BINARY(name, type)                                                                                             \
    static type first_##name(type x, type y);                                                                          \
    static type (*next_##name)(type, type) = first_##name;                                                             \
    static type first_##name(type x, type y)                                                                           \
    {                                                                                                                  \
        find_originals();                                                                                              \
        return next_##name(x, y);                                                                                      \
    }
#define PAIR(name, type)                                                                                               \
    static void first_##name(type x, type *sine, type *cosine);                                                        \
    static void (*next_##name)(type, type *, type *) = first_##name;                                                   \
    static void first_##name(type x, type *sine, type *cosine)                                                         \
    {                                                                                                                  \
        find_originals();                                                                                              \
        next_##name(x, sine, cosine);                                                                                  \
    }
#include "functions.def"
#undef UNARY
#undef BINARY
#undef PAIR

/* A program that never loaded libm calls none of these, but may still look one up: libm is opened for it. */
static void *original(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        void *libm = dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
        found = libm != NULL ? dlsym(libm, name) : NULL;
    }
    return found;
}

static void find_originals(void)
{
    void *found;
#define FIND(name, ...)                                                                                                \
    found = original(#name);                                                                                           \
    if (found != NULL)                                                                                                 \
        memcpy(&next_##name, &found, sizeof found);
#define UNARY  FIND
#define BINARY FIND
#define PAIR   FIND
#include "functions.def"
#undef UNARY
#undef BINARY
#undef PAIR
#undef FIND
}

#endif
