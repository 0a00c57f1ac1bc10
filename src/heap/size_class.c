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

/* Eight steps a row; the tests compare every entry with size_class_of. */
#define EACH(c) c, c
#define FOUR(c) c, c, c, c
const uint8_t size_class_of_step[SMALL_BYTES_MAX / 16 + 1] = {
    0,                                       /* 0 bytes */
    0,  1,  2,  3,  4,  5,  6,  7,           /* to 128, in steps of 16 */
    8,  9,  10, 11, 12, 13, 14, 15,          /* to 256, of 16 */
    EACH(16), EACH(17), EACH(18), EACH(19), EACH(20), EACH(21), EACH(22), EACH(23), /* to 512, of 32 */
    FOUR(24), FOUR(25), FOUR(26), FOUR(27), FOUR(28), FOUR(29), FOUR(30), FOUR(31), /* to 1024, of 64 */
};
