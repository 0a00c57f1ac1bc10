/* SPDX-License-Identifier: MIT
 *
 * realloc keeps min(old, new) bytes, whatever the two sizes are.  An allocator takes different ways for small, medium,
 * large and mapped blocks, grows some in place and moves some by mremap; the matrix below crosses every border in both
 * directions, with a neighbour on each side that must not notice.
 */
#include "support/family.h"
#include "support/pattern.h"
#include "support/rng.h"

static void edges(void)
{
    void *block = realloc(NULL, 100);
    CHECK(block != NULL);
    memset(block, 1, 100);
    /* glibc (and POSIX up to 2024) frees and returns NULL. */
    CHECK(opaque(realloc(block, opaque_size(0))) == NULL);
    block = realloc(NULL, opaque_size(0));
    CHECK(block != NULL);
    block = realloc(block, 1);
    CHECK(block != NULL);
    free(block);

    /* A shrink that stays in the class keeps the block where it is. */
    block = malloc(1000);
    CHECK(block != NULL);
    CHECK(realloc(block, malloc_usable_size(block)) == block || !test_is_sutler());
    free(block);
}

static void transition(size_t from, size_t to)
{
    uint64_t key = from * 31 + to;
    unsigned char *before = malloc(40);
    unsigned char *block = malloc(from);
    unsigned char *after = malloc(40);
    CHECK_MSG(before != NULL && block != NULL && after != NULL, "malloc(%zu)", from);
    pattern_fill(before, 40, 1);
    pattern_fill(after, 40, 2);
    pattern_fill_sparse(block, from, key);
    unsigned char *moved = realloc(block, to);
    CHECK_MSG(moved != NULL, "realloc %zu -> %zu", from, to);
    CHECK((uintptr_t)moved % 16 == 0);
    CHECK(malloc_usable_size(moved) >= to);
    pattern_verify_sparse(moved, from, from < to ? from : to, key);
    pattern_fill_sparse(moved, to, key + 1);
    pattern_verify(before, 40, 1);
    pattern_verify(after, 40, 2);
    pattern_verify_sparse(moved, to, to, key + 1);
    free(before);
    free(after);
    free(moved);
}

static void chain(struct rng *rng, unsigned max_bits, int steps)
{
    size_t size = 1;
    unsigned char *block = malloc(size);
    uint64_t key = 1;
    CHECK(block != NULL);
    pattern_fill_sparse(block, size, key);
    for (int i = 0; i < steps; i++) {
        size_t next = 1 + rng_size(rng, max_bits);
        block = realloc(block, next);
        CHECK(block != NULL);
        pattern_verify_sparse(block, size, size < next ? size : next, key);
        size = next;
        pattern_fill_sparse(block, size, ++key);
    }
    free(block);
}

/* The shape of a growing vector or string buffer. */
static void growth(size_t last)
{
    for (unsigned percent = 101; percent <= 200; percent += 33) {
        size_t size = 1;
        unsigned char *block = malloc(size);
        CHECK(block != NULL);
        block[0] = 0x77;
        while (size < last) {
            size_t next = size * percent / 100 + 1 + (percent == 101 ? size / 64 : 0);
            block = realloc(block, next);
            CHECK(block != NULL);
            CHECK(block[0] == 0x77 && block[size - 1] == (unsigned char)(size == 1 ? 0x77 : size * 7));
            size = next;
            block[size - 1] = (unsigned char)(size * 7);
            if (size == 1)
                block[0] = 0x77;
        }
        free(block);
    }
}

int main(int argc, char **argv)
{
    test_begin(180);
    struct rng rng = {test_seed_from(NULL)};
    size_t largest = test_option(argc, argv, "--largest-mib", 256) * MIB;
    static size_t sizes[128];
    size_t count = 0;
    for (size_t size = 1; size <= largest; size *= 2) {
        sizes[count++] = size;
        if (size >= 16 && size < 16 * MIB) {
            sizes[count++] = size - 1;
            sizes[count++] = size + 1;
            sizes[count++] = size + size / 2;
        }
    }
    edges();
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            /* The pairs of huge sizes cost a second each and differ in nothing: take one in four. */
            if (sizes[i] >= 4 * MIB && sizes[k] >= 4 * MIB && (i + k) % 4 != 0)
                continue;
            if (sizes[i] + sizes[k] >= 8 * MIB && (i * 7 + k) % 5 != 0)
                continue;
            transition(sizes[i], sizes[k]);
        }
    }
    transition(largest, 1);
    transition(1, largest);
    transition(largest / 2, largest);
    transition(largest, largest / 2);
    chain(&rng, 14, 50000);
    chain(&rng, 22, 2000);
    growth(64 * MIB);
    return 0;
}
