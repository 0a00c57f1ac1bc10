// SPDX-License-Identifier: MIT
//
// Mismatches: a size or alignment at the free that is not the block's, and a free of another family than the
// allocation.  The effect of a wrong size is that a later block of that size overlaps another one; of a wrong family
// there is none in an allocator where both are one.
#include "corpus.h"

#include <cstdlib>
#include <dlfcn.h>
#include <new>

static struct crowd before, after;

template <typename Free> static void mismatched(const struct bug *bug, void *block, Free &&free_wrongly)
{
    bug_begin();
    free_wrongly(block);
    bug_end();
    crowd_take(&after, bug->length ? bug->length : bug->size);
    bool overlap = crowd_overlaps(&after);
    for (size_t i = 0; i < after.count; i++)
        overlap |= crowd_meets(&before, after.blocks[i], after.size);
    effect(overlap);
    if (overlap)
        verdict();
    crowd_give(&after);
    crowd_give(&before);
    settle(bug->size);
}

static void *one_new(const struct bug *bug)
{
    if (before.count == 0)
        crowd_take(&before, bug->size);
    return ::operator new(bug->size);
}

// Sized delete with `length` for a block of `size`, as of a derived class without a virtual destructor.
static void sized_delete(const struct bug *bug)
{
    mismatched(bug, one_new(bug), [=](void *block) { ::operator delete(block, bug->length); });
}

static void sized_delete_array(const struct bug *bug)
{
    crowd_take(&before, bug->size);
    mismatched(bug, ::operator new[](bug->size), [=](void *block) { ::operator delete[](block, bug->length); });
}

static void aligned_delete_of_plain(const struct bug *bug)
{
    void *unaligned = one_new(bug);
    while (reinterpret_cast<uintptr_t>(unaligned) % 256 == 0)
        unaligned = one_new(bug);
    mismatched(bug, unaligned, [](void *block) { ::operator delete(block, std::align_val_t(256)); });
}

static void plain_delete_of_aligned(const struct bug *bug)
{
    crowd_take(&before, bug->size);
    mismatched(bug, ::operator new(bug->size, std::align_val_t(256)), [](void *block) { ::operator delete(block); });
}

static void delete_of_malloc(const struct bug *bug)
{
    crowd_take(&before, bug->size);
    mismatched(bug, take(bug->size), [](void *block) { ::operator delete(block); });
}

static void free_of_new(const struct bug *bug)
{
    mismatched(bug, one_new(bug), [](void *block) { give(block); });
}

static void delete_of_new_array(const struct bug *bug)
{
    crowd_take(&before, bug->size);
    mismatched(bug, ::operator new[](bug->size), [](void *block) { ::operator delete(block); });
}

// C23's free_sized and free_aligned_sized, where the allocator has them: nobody else does before glibc 2.43.
static void free_sized(const struct bug *bug)
{
    auto call = reinterpret_cast<void (*)(void *, size_t)>(dlsym(RTLD_DEFAULT, "free_sized"));
    crowd_take(&before, bug->size);
    void *block = take(bug->size);
    if (call == nullptr)
        verdict();
    mismatched(bug, block, [=](void *freed) { call(freed, bug->length); });
}

static void free_aligned_sized(const struct bug *bug)
{
    auto call = reinterpret_cast<void (*)(void *, size_t, size_t)>(dlsym(RTLD_DEFAULT, "free_aligned_sized"));
    crowd_take(&before, bug->size);
    void *block = aligned_alloc(256, bug->size);
    if (call == nullptr)
        verdict();
    mismatched(bug, block, [=](void *freed) { call(freed, 256, bug->length); });
}

extern "C" const struct bug mismatch[] = {
    {"sized_delete_larger", sized_delete, 64, 0, 1024},
    {"sized_delete_smaller", sized_delete, 1024, 0, 64},
    {"sized_delete_same_class", sized_delete, 58, 0, 62},
    {"sized_delete_large", sized_delete, MIB, 0, 2 * MIB},
    {"sized_delete_array", sized_delete_array, 256, 0, 64},
    {"aligned_delete_of_plain", aligned_delete_of_plain, 48, 0, 0},
    {"plain_delete_of_aligned", plain_delete_of_aligned, 256, 0, 0},
    {"free_sized_larger", free_sized, 64, 0, 1024},
    {"free_sized_smaller", free_sized, 1024, 0, 64},
    {"free_aligned_sized", free_aligned_sized, 512, 0, 256},
    {"delete_of_malloc", delete_of_malloc, 64, 0, 0},
    {"free_of_new", free_of_new, 64, 0, 0},
    {"delete_of_new_array", delete_of_new_array, 64, 0, 0},
    {nullptr, nullptr, 0, 0, 0},
};
