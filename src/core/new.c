/* SPDX-License-Identifier: MIT
 *
 * operator new, behind its fast path: as malloc, but where malloc fails the program's new_handler is called, again and
 * again, and without one std::bad_alloc is thrown.
 */
#include <stdlib.h>

#include "core/core.h"
#include "core/locked.h"

typedef void (*new_handler)(void);

/* std::get_new_handler, std::__throw_bad_alloc: present when libstdc++ (or libc++, for the first) is. */
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern _Noreturn void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

static _Noreturn COLD void throw_bad_alloc(void)
{
    if (_ZSt17__throw_bad_allocv != NULL)
        _ZSt17__throw_bad_allocv();
    abort();
}

COLD void new_failed(void)
{
    new_handler handler = _ZSt15get_new_handlerv != NULL ? _ZSt15get_new_handlerv() : NULL;
    if (handler == NULL)
        throw_bad_alloc();
    handler();
}

void *new_block(size_t size, size_t alignment)
{
    bool zero;
    void *block;
    while (unlikely((block = allocate(size, alignment, &zero)) == NULL))
        new_failed();
    return block;
}

void *new_any(size_t size)
{
    void *block = locked_take(size);
    return likely(block != NULL) ? block : new_block(size, BLOCK_ALIGNMENT);
}

void *new_slow(size_t c)
{
    return new_block(size_class[c].bytes, BLOCK_ALIGNMENT);
}
