/* SPDX-License-Identifier: MIT */
#include "heap/size_class.h"

#define BLOCKS(b, s) ((s) * SLICE_BYTES / (b))

const struct size_class size_class[CLASS_COUNT] = {
#define SIZE_CLASS(b, s)                                                                                               \
    {.reciprocal = UINT64_MAX / (b) + 1,                                                                               \
     .bytes = (b),                                                                                                     \
     .slices = (s),                                                                                                    \
     .blocks = (uint16_t)BLOCKS(b, s)},
#include "heap/size_classes.def"
#undef SIZE_CLASS
};

uint8_t size_class_of_small[SMALL_BYTES_MAX + 1];
uint8_t size_class_of_medium[(CLASS_BYTES_MAX >> STEP_SHIFT) + 1];

void size_class_start(void)
{
    for (size_t size = 0; size <= SMALL_BYTES_MAX; size++)
        size_class_of_small[size] = (uint8_t)size_class_of(size);
    for (size_t step = 0; step <= CLASS_BYTES_MAX >> STEP_SHIFT; step++)
        size_class_of_medium[step] = (uint8_t)size_class_of(step << STEP_SHIFT);
}
