/* SPDX-License-Identifier: MIT
 *
 * Why: a continued-fraction factoriser of the classic kind does its arithmetic on numbers of any size that live on the
 * heap: every result is a fresh block of a few dozen bytes that dies soon.  That is its interest as a benchmark, so
 * these numbers are immutable, counted, and never updated in place.
 *
 * Rules: functions borrow their arguments and return a reference the caller drops.  Numbers are not negative.
 */
#ifndef BENCH_NUMBER_H
#define BENCH_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

struct number;

struct number *number_new(uint64_t value);
struct number *number_parse(const char *decimal); /* NULL if it is none */
struct number *number_keep(struct number *number);
void number_drop(struct number *number);

int number_compare(const struct number *a, const struct number *b);
bool number_is(const struct number *a, uint64_t value);

struct number *number_add(const struct number *a, const struct number *b);
struct number *number_subtract(const struct number *a, const struct number *b); /* a >= b */
struct number *number_multiply(const struct number *a, const struct number *b);
/* Quotient; the remainder too if `remainder` is not NULL.  b is not zero. */
struct number *number_divide(const struct number *a, const struct number *b, struct number **remainder);
struct number *number_divide_small(const struct number *a, uint32_t b, uint32_t *remainder);
struct number *number_modulo(const struct number *a, const struct number *b);
struct number *number_multiply_modulo(const struct number *a, const struct number *b, const struct number *modulus);
struct number *number_square_root(const struct number *a); /* rounded down */
struct number *number_common_divisor(const struct number *a, const struct number *b);

/* Number of blocks allocated so far. */
uint64_t number_allocations(void);

#endif
