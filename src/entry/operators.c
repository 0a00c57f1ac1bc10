/* SPDX-License-Identifier: MIT
 *
 * The C++ operators, by their mangled names: libstdc++ is used if the program has it, never required.  Deletes are other
 * names of free; new and new[] have a fast path of their own that comes here when it is not simple.
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

static COLD void *new_retry(size_t size, size_t alignment, bool throws)
{
    bool zero;
    while (made_room()) {
        void *block = allocate(size, alignment, &zero);
        if (block != NULL)
            return block;
    }
    if (throws)
        throw_bad_alloc();
    return NULL;
}

static inline void *new_any(size_t size, size_t alignment, bool throws)
{
    bool zero;
    void *block = allocate(size, alignment, &zero);
    return likely(block != NULL) ? block : new_retry(size, alignment, throws);
}

void *new_medium(size_t size)
{
    return new_any(size, BLOCK_ALIGNMENT, true);
}

void *new_slow(size_t c)
{
    return new_any(size_class[c].bytes, BLOCK_ALIGNMENT, true);
}

/* std::nothrow_t and std::align_val_t arrive as a reference and a size. */
#define OPERATOR(name, parameters, expression)                                                                         \
    EXPORT void *name parameters;                                                                                      \
    EXPORT void *name parameters                                                                                       \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

OPERATOR(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), ((void)tag, new_any(size, BLOCK_ALIGNMENT, false)))
OPERATOR(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), ((void)tag, new_any(size, BLOCK_ALIGNMENT, false)))
OPERATOR(_ZnwmSt11align_val_t, (size_t size, size_t alignment), new_any(size, alignment, true))
OPERATOR(_ZnamSt11align_val_t, (size_t size, size_t alignment), new_any(size, alignment, true))
OPERATOR(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *tag),
         ((void)tag, new_any(size, alignment, false)))
OPERATOR(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *tag),
         ((void)tag, new_any(size, alignment, false)))

#if !defined(__x86_64__) /* elsewhere in hot_x86_64.S */
OPERATOR(_Znwm, (size_t size), new_any(size, BLOCK_ALIGNMENT, true))
OPERATOR(_Znam, (size_t size), new_any(size, BLOCK_ALIGNMENT, true))
#endif
