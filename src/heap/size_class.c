/* SPDX-License-Identifier: MIT */
#include "heap/size_class.h"

#define SIZE_CLASS(b, s)                                                                                               \
    {.reciprocal = UINT64_MAX / (b) + 1, .bytes = (b), .slices = (s), .blocks = (uint16_t)((s) * SLICE_BYTES / (b))}

const struct size_class size_class[CLASS_COUNT] = {
#define SIZE_CLASSES(b, step, s0, s1, s2, s3, s4, s5, s6, s7)                                                          \
    SIZE_CLASS((b), s0), SIZE_CLASS((b) + (step), s1), SIZE_CLASS((b) + 2 * (step), s2),                               \
        SIZE_CLASS((b) + 3 * (step), s3), SIZE_CLASS((b) + 4 * (step), s4), SIZE_CLASS((b) + 5 * (step), s5),          \
        SIZE_CLASS((b) + 6 * (step), s6), SIZE_CLASS((b) + 7 * (step), s7),
#include "heap/size_classes.def"
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
