/* SPDX-License-Identifier: MIT
 *
 * A program that replaces operator new and operator delete, and none of their other forms: it counts blocks, and puts a
 * word before each.  All forms have to come to its two, in the program, and in a library that it is linked with, or
 * that it loads later.  With ALIGNED it replaces those of aligned arrays, which three forms come to.  With OWN_MALLOC
 * it has a malloc of its own as well, as Firefox has, and is given none but its own blocks to free.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

#include "api/replaced.h"

static const std::uint64_t mark = 0x5a17ed0badcafe01;
#ifdef ALIGNED
static const std::size_t blocks_of_all_forms = 3;
#else
static const std::size_t header = 32, blocks_of_all_forms = 14;
#endif
static long live, made;

static void fail(const char *what)
{
    if (write(STDERR_FILENO, what, strlen(what)) > 0)
        _exit(1);
    _exit(2);
}

/* The block that is handed out lies `ahead` bytes behind the start of one of malloc's. */
static void *make(char *start, std::size_t ahead)
{
    if (start == nullptr)
        throw std::bad_alloc();
    memcpy(start, &mark, sizeof mark);
    live++;
    made++;
    return start + ahead;
}

static void drop(void *block, std::size_t ahead)
{
    char *start = static_cast<char *>(block) - ahead;
    if (memcmp(start, &mark, sizeof mark) != 0)
        fail("a block that the program's operator new did not make\n");
    memset(start, 0, sizeof mark);
    live--;
    free(start);
}

#ifdef ALIGNED
__attribute__((noinline)) void *operator new[](std::size_t size, std::align_val_t alignment)
{
    const std::size_t line = static_cast<std::size_t>(alignment);
    return make(static_cast<char *>(aligned_alloc(line, (size + 2 * line - 1) / line * line)), line);
}

__attribute__((noinline)) void operator delete[](void *block, std::align_val_t alignment) noexcept
{
    drop(block, static_cast<std::size_t>(alignment));
}
#else
__attribute__((noinline)) void *operator new(std::size_t size)
{
    return make(static_cast<char *>(malloc(size + header)), header);
}

__attribute__((noinline)) void operator delete(void *block) noexcept
{
    if (block != nullptr)
        drop(block, header);
}
#endif

#ifdef OWN_MALLOC
/* Hands out each byte once. */
static char arena[64 << 20];
static std::size_t used;

static bool is_own(const void *p)
{
    return p >= arena && p < arena + sizeof arena;
}

extern "C" void *malloc(std::size_t size)
{
    const std::size_t bytes = (size + 31) & ~std::size_t{15};
    char *start = arena + __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
    memcpy(start, &bytes, sizeof bytes);
    return start + 16 <= arena + sizeof arena - bytes ? start + 16 : nullptr;
}

extern "C" void free(void *p)
{
    if (p != nullptr && !is_own(p))
        fail("free: a block of another malloc\n");
}

extern "C" void *calloc(std::size_t count, std::size_t size)
{
    return malloc(count * size);
}

extern "C" void *realloc(void *old, std::size_t size)
{
    if (old != nullptr && !is_own(old))
        fail("realloc: a block of another malloc\n");
    void *block = malloc(size);
    std::size_t had = 0;
    if (old != nullptr)
        memcpy(&had, static_cast<char *>(old) - 16, sizeof had);
    return old == nullptr ? block : memcpy(block, old, had - 16 < size ? had - 16 : size);
}

extern "C" void *aligned_alloc(std::size_t alignment, std::size_t size)
{
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(malloc(size + alignment));
    return reinterpret_cast<void *>((start + alignment - 1) & ~(alignment - 1));
}
#endif

static void expect_all_forms(void (*use)(), const char *where)
{
    const long before = live, made_before = made;
    use();
    if (live == before && made == made_before + static_cast<long>(blocks_of_all_forms))
        return;
    fprintf(stderr, "%s: %ld blocks made, %ld too few freed\n", where, made - made_before, live - before);
    fail("the operators do not come to those the program replaced\n");
}

int main(int, char **argv)
{
    expect_all_forms(use_all_forms, "program");
    if (void *linked = dlsym(RTLD_DEFAULT, "plugin_use_all_forms"))
        expect_all_forms(reinterpret_cast<void (*)()>(linked), "library");
    void *plugin = dlopen(argv[1], RTLD_NOW);
    void (*use)() = plugin != nullptr ? reinterpret_cast<void (*)()>(dlsym(plugin, "plugin_use_all_forms")) : nullptr;
    if (use == nullptr)
        fail("no plugin\n");
    expect_all_forms(use, "plugin");
    return 0;
}
