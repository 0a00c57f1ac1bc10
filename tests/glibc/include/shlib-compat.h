/* SPDX-License-Identifier: MIT
 *
 * References to the old names that glibc keeps for old programs, and to its debugging library's.  On x86-64 the first
 * version of the C library, which the tests call 2.0, is 2.2.5; on aarch64 it is 2.17, where these names never were.
 */
#ifndef TESTS_GLIBC_SHLIB_COMPAT_H
#define TESTS_GLIBC_SHLIB_COMPAT_H

#define compat_symbol_reference(library, name, symbol, version) __asm__(".symver " #name ", " #symbol "@GLIBC_2.2.5");

#endif
