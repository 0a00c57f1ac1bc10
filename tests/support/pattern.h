/* SPDX-License-Identifier: MIT
 *
 * Content that proves who owns a block.  Every byte is a function of (key, offset): two blocks that share one byte, a
 * realloc that lost a byte, a write of allocator metadata into live memory all show as a mismatch at a known offset.
 * pattern_fill/pattern_verify cover the whole block; the _sparse pair covers the ends and one word in each 256 bytes,
 * for blocks so large that memory bandwidth would be all the test measures.
 */
#ifndef TESTS_PATTERN_H
#define TESTS_PATTERN_H

#include "check.h"

static inline uint64_t pattern_word(uint64_t key, size_t index)
{
    uint64_t z = key * 0x9e3779b97f4a7c15u + index * 0xd1342543de82ef95u;
    return z ^ z >> 29;
}

static inline void pattern_fill_range(void *block, size_t from, size_t to, uint64_t key)
{
    unsigned char *bytes = block;
    size_t i = from;
    while (i < to) {
        uint64_t word = pattern_word(key, i / 8);
        if (i % 8 == 0 && to - i >= 8) {
            memcpy(bytes + i, &word, 8);
            i += 8;
        } else {
            bytes[i] = (unsigned char)(word >> (i % 8 * 8));
            i++;
        }
    }
}

/* Offset of the first wrong byte, or SIZE_MAX when all of [from, to) is as written. */
static inline size_t pattern_mismatch_range(const void *block, size_t from, size_t to, uint64_t key)
{
    const unsigned char *bytes = block;
    size_t i = from;
    while (i < to) {
        uint64_t word = pattern_word(key, i / 8);
        if (i % 8 == 0 && to - i >= 8 && memcmp(bytes + i, &word, 8) == 0) {
            i += 8;
            continue;
        }
        if (bytes[i] != (unsigned char)(word >> (i % 8 * 8)))
            return i;
        i++;
    }
    return SIZE_MAX;
}

static inline void pattern_fill(void *block, size_t size, uint64_t key)
{
    pattern_fill_range(block, 0, size, key);
}

static inline void pattern_expect(const void *block, size_t from, size_t to, uint64_t key)
{
    size_t at = pattern_mismatch_range(block, from, to, key);
    CHECK_MSG(at == SIZE_MAX, "block %p of %zu bytes: wrong byte at offset %zu (key 0x%llx)", (const void *)block, to,
              at, (unsigned long long)key);
}

static inline void pattern_verify(const void *block, size_t size, uint64_t key)
{
    pattern_expect(block, 0, size, key);
}

#define PATTERN_DENSE  4096
#define PATTERN_STRIDE 256

static inline void pattern_fill_sparse(void *block, size_t size, uint64_t key)
{
    if (size <= 2 * PATTERN_DENSE) {
        pattern_fill(block, size, key);
        return;
    }
    pattern_fill_range(block, 0, PATTERN_DENSE / 2, key);
    for (size_t i = PATTERN_DENSE / 2; i + 8 <= size - 64; i += PATTERN_STRIDE)
        pattern_fill_range(block, i, i + 8, key);
    pattern_fill_range(block, size - 64, size, key);
}

/* Checks what pattern_fill_sparse(block, filled_size, key) wrote, as far as the first `size` bytes hold it. */
static inline void pattern_verify_sparse(const void *block, size_t filled_size, size_t size, uint64_t key)
{
    if (filled_size <= 2 * PATTERN_DENSE) {
        pattern_expect(block, 0, size, key);
        return;
    }
    size_t head = PATTERN_DENSE / 2;
    pattern_expect(block, 0, head < size ? head : size, key);
    for (size_t i = head; i + 8 <= filled_size - 64 && i + 8 <= size; i += PATTERN_STRIDE)
        pattern_expect(block, i, i + 8, key);
    if (size == filled_size)
        pattern_expect(block, filled_size - 64, filled_size, key);
}

#endif
