/* SPDX-License-Identifier: MIT
 *
 * A library whose sized operator delete is whatever its own function chooses when the loader asks, as that of
 * gperftools may be.
 */
#include <cstddef>
#include <new>

static void by_size(void *block, std::size_t) noexcept
{
    operator delete(block);
}

extern "C" {
static void (*choose())(void *, std::size_t) noexcept
{
    return by_size;
}

void _ZdlPvm(void *block, std::size_t size) noexcept __attribute__((ifunc("choose")));
}
