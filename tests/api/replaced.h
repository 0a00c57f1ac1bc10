/* SPDX-License-Identifier: MIT
 *
 * All forms of new and delete, in a program that has replaced two of them, or in a library it loads.
 */
#ifndef SUTLER_TESTS_API_REPLACED_H
#define SUTLER_TESTS_API_REPLACED_H

#include <cstddef>
#include <new>

/* Takes and frees 14 blocks by way of the replaced operators, and 6 that are aligned. */
inline void use_all_forms()
{
    const std::size_t size = 100;
    const std::align_val_t line{64};
    ::operator delete(::operator new(size));
    ::operator delete(::operator new(size), size);
    ::operator delete(::operator new(size), std::nothrow);
    ::operator delete(::operator new(size, std::nothrow));
    ::operator delete(::operator new(size, std::nothrow), size);
    ::operator delete[](::operator new[](size));
    ::operator delete[](::operator new[](size), size);
    ::operator delete[](::operator new[](size), std::nothrow);
    ::operator delete[](::operator new[](size, std::nothrow));
    ::operator delete[](::operator new[](size, std::nothrow), size);
    ::operator delete[](::operator new[](size, std::nothrow), std::nothrow);
    ::operator delete(::operator new(size, std::nothrow), std::nothrow);
    /* As addresses, which the loader binds another way. */
    void (*volatile sized)(void *, std::size_t) = ::operator delete;
    void *(*volatile array)(std::size_t) = ::operator new[];
    void (*volatile sized_array)(void *, std::size_t) = ::operator delete[];
    sized(::operator new(size), size);
    sized_array(array(size), size);
    ::operator delete(::operator new(size, line), line);
    ::operator delete(::operator new(size, line), size, line);
    ::operator delete(::operator new(size, line, std::nothrow), line, std::nothrow);
    ::operator delete[](::operator new[](size, line), line);
    ::operator delete[](::operator new[](size, line), size, line);
    ::operator delete[](::operator new[](size, line, std::nothrow), line, std::nothrow);
}

#endif
