/* SPDX-License-Identifier: MIT
 *
 * Why: keys and results are words of 64 bits; these are numbers as words and back.  Of a float the lower half counts.
 */
#ifndef PREDICT_BITS_H
#define PREDICT_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint64_t bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double double_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

#endif
