/* SPDX-License-Identifier: MIT */
#include "heap/size_class.h"

#include "heap/layout.h"


const struct size_class size_class[CLASS_COUNT] = {
#define SIZE_CLASS(b, s)                                                                                               \
    {.bytes = (b),                                                                                                     \
     .reciprocal = (uint32_t)(((1ull << 32) + (b) - 1) / (b)),                                                         \
     .slices = (s),                                                                                                    \
     .blocks = (uint16_t)((s) * SLICE_BYTES / (b))},
#include "heap/size_classes.def"
#undef SIZE_CLASS
};

uint8_t size_class_of_small[SMALL_BYTES_MAX + 1];

void size_class_start(void)
{
    for (size_t size = 0; size <= SMALL_BYTES_MAX; size++)
        size_class_of_small[size] = (uint8_t)size_class_of(size);
}
