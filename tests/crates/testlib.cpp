// SPDX-License-Identifier: MIT
//
// The seam between snmalloc's functional tests and the malloc of this process.
//
// Their tests call a small test library (test/snmalloc_testlib.h in the package) that is meant to be compiled against
// snmalloc.  This is our own implementation of the declarations in that header, over plain malloc: nothing of snmalloc
// is called, so what the tests exercise is whatever serves malloc, the preloaded library.  Questions that only snmalloc
// can answer about its own heap ("is this block yours?") are answered as for a foreign allocator, and the tests then
// ask less.
#include <test/snmalloc_testlib.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <thread>

namespace snmalloc
{
// Weak: tests that include more of the package bring their own.
[[noreturn]] __attribute__((weak)) void error(const char *const text)
{
    std::fputs(text, stderr);
    std::abort();
}

template <ZeroMem zero_mem> void *alloc(size_t size)
{
    return zero_mem == ZeroMem::YesZero ? ::calloc(1, size) : ::malloc(size);
}
template void *alloc<ZeroMem::YesZero>(size_t);
template void *alloc<ZeroMem::NoZero>(size_t);

template <ZeroMem zero_mem> void *alloc_aligned(size_t align, size_t size)
{
    void *block = ::memalign(align, size);
    if (zero_mem == ZeroMem::YesZero && block != nullptr)
        std::memset(block, 0, size);
    return block;
}
template void *alloc_aligned<ZeroMem::YesZero>(size_t, size_t);
template void *alloc_aligned<ZeroMem::NoZero>(size_t, size_t);

void dealloc(void *p)
{
    ::free(p);
}

void dealloc(void *p, size_t)
{
    ::free(p);
}

void dealloc(void *p, size_t, size_t)
{
    ::free(p);
}

void debug_teardown()
{
}

size_t alloc_size(const void *p)
{
    if (p == nullptr)
        return SIZE_MAX; // the start of a block nobody owns, as __malloc_start_pointer answers below
    return ::malloc_usable_size(const_cast<void *>(p));
}

size_t remaining_bytes(const void *)
{
    return SIZE_MAX; // of an interior pointer nothing is known: as much as there is
}

bool is_owned(void *)
{
    return false;
}

void debug_check_empty(bool *result)
{
    if (result != nullptr)
        *result = true;
}

void debug_in_use(size_t)
{
}

void cleanup_unused()
{
    ::malloc_trim(0);
}

size_t max_small_sizeclass_bits()
{
    return 16;
}

size_t pal_address_bits()
{
    return 47;
}

uint64_t pal_tick()
{
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void pal_pause()
{
    std::this_thread::yield();
}

struct TestScopedAllocator {
};

static TestScopedAllocator only;

ScopedAllocHandle::ScopedAllocHandle() : ptr(&only)
{
}

ScopedAllocHandle::~ScopedAllocHandle() = default;

void *ScopedAllocHandle::alloc(size_t size)
{
    return ::malloc(size);
}

void ScopedAllocHandle::dealloc(void *p)
{
    ::free(p);
}

void ScopedAllocHandle::dealloc(void *p, size_t)
{
    ::free(p);
}

ScopedAllocHandle *ScopedAllocHandle::operator->()
{
    return this;
}

const ScopedAllocHandle *ScopedAllocHandle::operator->() const
{
    return this;
}

ScopedAllocHandle get_scoped_allocator()
{
    return {};
}

namespace libc
{
void *malloc(size_t size)
{
    return ::malloc(size);
}

void *malloc_small(smallsizeclass_t sizeclass)
{
    return ::malloc(sizeclass_to_size_const(sizeclass));
}

void *malloc_small_zero(smallsizeclass_t sizeclass)
{
    return ::calloc(1, sizeclass_to_size_const(sizeclass));
}

void free(void *p)
{
    ::free(p);
}

void *calloc(size_t count, size_t size)
{
    return ::calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    return ::realloc(p, size);
}

size_t malloc_usable_size(const void *p)
{
    return ::malloc_usable_size(const_cast<void *>(p));
}

void *memalign(size_t alignment, size_t size)
{
    return ::memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return ::aligned_alloc(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    return ::posix_memalign(result, alignment, size);
}

void *reallocarray(void *p, size_t count, size_t size)
{
    return ::reallocarray(p, count, size);
}

// Of a block nobody owns, nothing is known: it may start at the bottom and end at the top of memory.
void *__malloc_start_pointer(void *)
{
    return nullptr;
}

void *__malloc_last_byte_pointer(void *)
{
    return reinterpret_cast<void *>(UINTPTR_MAX);
}

void *__malloc_end_pointer(void *)
{
    return reinterpret_cast<void *>(UINTPTR_MAX);
}
} // namespace libc
} // namespace snmalloc

extern "C" {
void *testlib_malloc(size_t size)
{
    return ::malloc(size);
}

void testlib_free(void *p)
{
    ::free(p);
}

void testlib_cfree(void *p)
{
    ::free(p);
}

void *testlib_calloc(size_t count, size_t size)
{
    return ::calloc(count, size);
}

size_t testlib_malloc_usable_size(void *p)
{
    return ::malloc_usable_size(p);
}

size_t testlib_malloc_good_size(size_t size)
{
    void *block = ::malloc(size);
    size_t usable = ::malloc_usable_size(block);
    ::free(block);
    return usable;
}

void *testlib_realloc(void *p, size_t size)
{
    return ::realloc(p, size);
}

void *testlib_reallocarray(void *p, size_t count, size_t size)
{
    return ::reallocarray(p, count, size);
}

// BSD's: the pointer is updated in place, the error is returned and errno kept.
int testlib_reallocarr(void *pointer, size_t count, size_t size)
{
    int saved = errno;
    void **place = static_cast<void **>(pointer);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return EOVERFLOW;
    void *moved = ::realloc(*place, bytes == 0 ? 1 : bytes);
    int error = moved == nullptr ? errno : 0;
    errno = saved;
    if (moved != nullptr)
        *place = moved;
    return error;
}

void *testlib_memalign(size_t alignment, size_t size)
{
    return ::memalign(alignment, size);
}

void *testlib_aligned_alloc(size_t alignment, size_t size)
{
    return ::aligned_alloc(alignment, size);
}

int testlib_posix_memalign(void **result, size_t alignment, size_t size)
{
    return ::posix_memalign(result, alignment, size);
}
}

void get_malloc_info_v1(malloc_info_v1 *info)
{
    struct mallinfo2 now = mallinfo2();
    info->current_memory_usage = now.arena + now.hblkhd;
    if (info->peak_memory_usage < info->current_memory_usage)
        info->peak_memory_usage = info->current_memory_usage;
}
