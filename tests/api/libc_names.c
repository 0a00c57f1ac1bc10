/* SPDX-License-Identifier: MIT
 *
 * glibc's other names for the family, __libc_malloc and kin: some programs call them past a malloc of their own.  Their
 * blocks and everybody's are of one heap.
 */
#include "support/check.h"
#include <malloc.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void *__libc_valloc(size_t size);
extern void *__libc_pvalloc(size_t size);
extern void __libc_free(void *block);
extern int __posix_memalign(void **block, size_t alignment, size_t size) __attribute__((weak));

static void hand_over(char *block, size_t bytes, size_t alignment)
{
    CHECK(block != NULL && (uintptr_t)block % alignment == 0 && malloc_usable_size(block) >= bytes);
    memset(block, 7, bytes);
    block = realloc(block, 2 * bytes);
    CHECK(block != NULL && block[bytes - 1] == 7);
    free(block);
}

int main(void)
{
    test_begin(60);
    for (size_t bytes = 1; bytes < 50 * MIB; bytes = bytes * 5 + 3) {
        hand_over(__libc_malloc(bytes), bytes, 1);
        hand_over(__libc_calloc(1, bytes), bytes, 1);
        hand_over(__libc_memalign(256, bytes), bytes, 256);
        hand_over(__libc_valloc(bytes), bytes, (size_t)sysconf(_SC_PAGESIZE));
        hand_over(__libc_pvalloc(bytes), bytes, (size_t)sysconf(_SC_PAGESIZE));
        hand_over(__libc_realloc(malloc(bytes), bytes + 10), bytes + 10, 1);
        __libc_free(malloc(bytes));
        void *block = NULL;
        CHECK(__posix_memalign != NULL || !test_is_sutler());
        if (__posix_memalign != NULL) {
            CHECK(__posix_memalign(&block, 64, bytes) == 0);
            hand_over(block, bytes, 64);
        }
    }
    return 0;
}
