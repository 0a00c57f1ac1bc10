// SPDX-License-Identifier: MIT
//
// The C++ operators over an allocator that brings only C entry points.  Without them libstdc++'s own operators would
// call malloc through one more jump, and the comparison would be unfair to that peer.  Compiled with PEER_MALLOC,
// PEER_FREE and PEER_ALIGNED (alignment, size) set to the peer's names.
#include <cstddef>
#include <new>

extern "C" {
void *PEER_MALLOC(std::size_t);
void PEER_FREE(void *);
void *PEER_ALIGNED(std::size_t, std::size_t);
}

[[gnu::noinline, gnu::cold]] static void *again(std::size_t size, std::size_t alignment)
{
    for (;;) {
        void *block = alignment ? PEER_ALIGNED(alignment, size) : PEER_MALLOC(size);
        if (block)
            return block;
        std::new_handler handler = std::get_new_handler();
        if (!handler)
            throw std::bad_alloc();
        handler();
    }
}

static inline void *take(std::size_t size)
{
    void *block = PEER_MALLOC(size);
    return __builtin_expect(block != nullptr, 1) ? block : again(size, 0);
}

void *operator new(std::size_t size)
{
    return take(size);
}
void *operator new[](std::size_t size)
{
    return take(size);
}
void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
    return PEER_MALLOC(size);
}
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept
{
    return PEER_MALLOC(size);
}
void *operator new(std::size_t size, std::align_val_t to)
{
    return again(size, static_cast<std::size_t>(to));
}
void *operator new[](std::size_t size, std::align_val_t to)
{
    return again(size, static_cast<std::size_t>(to));
}
void operator delete(void *block) noexcept
{
    PEER_FREE(block);
}
void operator delete[](void *block) noexcept
{
    PEER_FREE(block);
}
void operator delete(void *block, std::size_t) noexcept
{
    PEER_FREE(block);
}
void operator delete[](void *block, std::size_t) noexcept
{
    PEER_FREE(block);
}
void operator delete(void *block, std::align_val_t) noexcept
{
    PEER_FREE(block);
}
void operator delete[](void *block, std::align_val_t) noexcept
{
    PEER_FREE(block);
}
void operator delete(void *block, std::size_t, std::align_val_t) noexcept
{
    PEER_FREE(block);
}
void operator delete[](void *block, std::size_t, std::align_val_t) noexcept
{
    PEER_FREE(block);
}
