/* SPDX-License-Identifier: MIT
 *
 * The C++ operators, by their mangled names: libstdc++ is used if the program has it, never required.  Deletes are
 * other names of free; new and new[] have a fast path of their own that comes here when it is not simple.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/core.h"

typedef void (*new_handler)(void);

/* std::get_new_handler, std::__throw_bad_alloc: present when libstdc++ (or libc++, for the first) is. */
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern _Noreturn void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

/* Calls the new_handler; false if there is none. */
static bool made_room(void)
{
    new_handler handler = _ZSt15get_new_handlerv != NULL ? _ZSt15get_new_handlerv() : NULL;
    if (handler == NULL)
        return false;
    handler();
    return true;
}

static _Noreturn COLD void throw_bad_alloc(void)
{
    if (_ZSt17__throw_bad_allocv != NULL)
        _ZSt17__throw_bad_allocv();
    abort();
}

static inline void *new_block(size_t size, size_t alignment)
{
    bool zero;
    void *block;
    while (unlikely((block = allocate(size, alignment, &zero)) == NULL))
        if (!made_room())
            throw_bad_alloc();
    return block;
}

void *new_any(size_t size)
{
    return new_block(size, BLOCK_ALIGNMENT);
}

void *new_slow(size_t c)
{
    return new_block(size_class[c].bytes, BLOCK_ALIGNMENT);
}

/* std::align_val_t arrives as a size.  The nothrow forms are in nothrow.c. */
#define OPERATOR(name, parameters, expression)                                                                         \
    EXPORT void *name parameters;                                                                                      \
    EXPORT void *name parameters                                                                                       \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

OPERATOR(_ZnwmSt11align_val_t, (size_t size, size_t alignment), new_block(size, alignment))
OPERATOR(_ZnamSt11align_val_t, (size_t size, size_t alignment), new_block(size, alignment))

#if !defined(__x86_64__) /* elsewhere in hot_x86_64.S */
OPERATOR(_Znwm, (size_t size), new_block(size, BLOCK_ALIGNMENT))
OPERATOR(_Znam, (size_t size), new_block(size, BLOCK_ALIGNMENT))
#endif
