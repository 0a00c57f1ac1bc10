/* SPDX-License-Identifier: MIT
 *
 * Why: see number.h.  Schoolbook algorithms: the numbers have one to five digits of 32 bits.
 */
#include "number.h"

#include <stdio.h>
#include <stdlib.h>

struct number {
    uint32_t references;
    uint32_t used;    /* digits; no leading zeros, so zero has none */
    uint32_t digit[]; /* least significant first */
};

static uint64_t allocations;

uint64_t number_allocations(void)
{
    return allocations;
}

static struct number *number_room(uint32_t digits)
{
    struct number *number = malloc(sizeof(*number) + digits * sizeof(number->digit[0]));
    if (!number) {
        fprintf(stderr, "out of memory\n");
        exit(3);
    }
    allocations++;
    number->references = 1;
    number->used = digits;
    return number;
}

static struct number *number_trim(struct number *number)
{
    while (number->used && !number->digit[number->used - 1])
        number->used--;
    return number;
}

struct number *number_new(uint64_t value)
{
    struct number *number = number_room(2);
    number->digit[0] = (uint32_t)value;
    number->digit[1] = (uint32_t)(value >> 32);
    return number_trim(number);
}

struct number *number_keep(struct number *number)
{
    number->references++;
    return number;
}

void number_drop(struct number *number)
{
    if (number && --number->references == 0)
        free(number);
}

int number_compare(const struct number *a, const struct number *b)
{
    if (a->used != b->used)
        return a->used < b->used ? -1 : 1;
    for (uint32_t i = a->used; i-- > 0;) {
        if (a->digit[i] != b->digit[i])
            return a->digit[i] < b->digit[i] ? -1 : 1;
    }
    return 0;
}

bool number_is(const struct number *a, uint64_t value)
{
    uint64_t low = (a->used > 0 ? a->digit[0] : 0) | (uint64_t)(a->used > 1 ? a->digit[1] : 0) << 32;
    return a->used <= 2 && low == value;
}

struct number *number_add(const struct number *a, const struct number *b)
{
    if (a->used < b->used) {
        const struct number *swap = a;
        a = b;
        b = swap;
    }
    struct number *sum = number_room(a->used + 1);
    uint64_t carry = 0;
    for (uint32_t i = 0; i < a->used; i++) {
        carry += (uint64_t)a->digit[i] + (i < b->used ? b->digit[i] : 0);
        sum->digit[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum->digit[a->used] = (uint32_t)carry;
    return number_trim(sum);
}

struct number *number_subtract(const struct number *a, const struct number *b)
{
    struct number *difference = number_room(a->used);
    uint64_t borrow = 0;
    for (uint32_t i = 0; i < a->used; i++) {
        uint64_t digit = (uint64_t)a->digit[i] - (i < b->used ? b->digit[i] : 0) - borrow;
        difference->digit[i] = (uint32_t)digit;
        borrow = digit >> 63;
    }
    return number_trim(difference);
}

struct number *number_multiply(const struct number *a, const struct number *b)
{
    struct number *product = number_room(a->used + b->used);
    for (uint32_t i = 0; i < product->used; i++)
        product->digit[i] = 0;
    for (uint32_t i = 0; i < a->used; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; j < b->used; j++) {
            carry += (uint64_t)a->digit[i] * b->digit[j] + product->digit[i + j];
            product->digit[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product->digit[i + b->used] = (uint32_t)carry;
    }
    return number_trim(product);
}

struct number *number_divide_small(const struct number *a, uint32_t b, uint32_t *remainder)
{
    struct number *quotient = number_room(a->used);
    uint64_t rest = 0;
    for (uint32_t i = a->used; i-- > 0;) {
        rest = rest << 32 | a->digit[i];
        quotient->digit[i] = (uint32_t)(rest / b);
        rest %= b;
    }
    *remainder = (uint32_t)rest;
    return number_trim(quotient);
}

/* a << bits (below 32), with one digit more. */
static struct number *number_shifted(const struct number *a, unsigned bits)
{
    struct number *shifted = number_room(a->used + 1);
    uint64_t carry = 0;
    for (uint32_t i = 0; i < a->used; i++) {
        carry |= (uint64_t)a->digit[i] << bits;
        shifted->digit[i] = (uint32_t)carry;
        carry >>= 32;
    }
    shifted->digit[a->used] = (uint32_t)carry;
    return shifted;
}

/* One digit of a long division: estimates it from the leading digits, subtracts divisor * digit from the `n` + 1 digits
 * at `rest`, and puts back what was too much. */
static uint32_t divide_step(uint32_t *rest, const uint32_t *divisor, uint32_t n)
{
    uint64_t lead = (uint64_t)rest[n] << 32 | rest[n - 1];
    uint64_t guess = lead / divisor[n - 1];
    if (guess > UINT32_MAX)
        guess = UINT32_MAX;
    uint64_t carry = 0, borrow = 0;
    for (uint32_t i = 0; i < n; i++) {
        carry += guess * divisor[i];
        uint64_t digit = (uint64_t)rest[i] - (uint32_t)carry - borrow;
        rest[i] = (uint32_t)digit;
        borrow = digit >> 63;
        carry >>= 32;
    }
    uint64_t top = (uint64_t)rest[n] - carry - borrow;
    rest[n] = (uint32_t)top;
    for (borrow = top >> 63; borrow;) {
        guess--;
        uint64_t sum = 0;
        for (uint32_t i = 0; i < n; i++) {
            sum += (uint64_t)rest[i] + divisor[i];
            rest[i] = (uint32_t)sum;
            sum >>= 32;
        }
        sum += rest[n];
        rest[n] = (uint32_t)sum;
        borrow -= sum >> 32;
    }
    return (uint32_t)guess;
}

struct number *number_divide(const struct number *a, const struct number *b, struct number **remainder)
{
    if (b->used <= 1) {
        uint32_t rest;
        struct number *quotient = number_divide_small(a, b->digit[0], &rest);
        if (remainder)
            *remainder = number_new(rest);
        return quotient;
    }
    if (number_compare(a, b) < 0) {
        if (remainder)
            *remainder = number_add(a, &(struct number){0});
        return number_new(0);
    }
    unsigned shift = (unsigned)__builtin_clz(b->digit[b->used - 1]);
    struct number *rest = number_shifted(a, shift);
    struct number *divisor = number_shifted(b, shift);
    struct number *quotient = number_room(a->used - b->used + 1);
    for (uint32_t i = quotient->used; i-- > 0;)
        quotient->digit[i] = divide_step(&rest->digit[i], divisor->digit, b->used);
    number_drop(divisor);
    if (remainder) {
        uint64_t high = 0;
        rest->used = b->used;
        for (uint32_t i = rest->used; i-- > 0;) {
            uint64_t both = high << 32 | rest->digit[i];
            high = rest->digit[i];
            rest->digit[i] = (uint32_t)(both >> shift);
        }
        *remainder = number_trim(rest);
    } else {
        number_drop(rest);
    }
    return number_trim(quotient);
}

struct number *number_modulo(const struct number *a, const struct number *b)
{
    struct number *remainder;
    number_drop(number_divide(a, b, &remainder));
    return remainder;
}

struct number *number_multiply_modulo(const struct number *a, const struct number *b, const struct number *modulus)
{
    struct number *product = number_multiply(a, b);
    struct number *remainder = number_modulo(product, modulus);
    number_drop(product);
    return remainder;
}

struct number *number_parse(const char *decimal)
{
    struct number *value = number_new(0);
    struct number *ten = number_new(10);
    bool is_number = *decimal;
    for (; *decimal && is_number; decimal++) {
        is_number = *decimal >= '0' && *decimal <= '9';
        struct number *digit = number_new((uint64_t)(*decimal - '0'));
        struct number *scaled = number_multiply(value, ten);
        number_drop(value);
        value = number_add(scaled, digit);
        number_drop(scaled);
        number_drop(digit);
    }
    number_drop(ten);
    if (is_number)
        return value;
    number_drop(value);
    return NULL;
}

/* Newton's iteration from above: falls until it would rise. */
struct number *number_square_root(const struct number *a)
{
    if (a->used == 0)
        return number_new(0);
    struct number *root = number_room(a->used / 2 + 2);
    for (uint32_t i = 0; i < root->used; i++)
        root->digit[i] = i + 1 == root->used ? 1 : 0;
    for (;;) {
        struct number *quotient = number_divide(a, root, NULL);
        struct number *sum = number_add(root, quotient);
        uint32_t odd;
        struct number *next = number_divide_small(sum, 2, &odd);
        number_drop(quotient);
        number_drop(sum);
        if (number_compare(next, root) >= 0) {
            number_drop(next);
            return root;
        }
        number_drop(root);
        root = next;
    }
}

struct number *number_common_divisor(const struct number *a, const struct number *b)
{
    struct number *high = number_add(a, &(struct number){0});
    struct number *low = number_add(b, &(struct number){0});
    while (low->used) {
        struct number *rest = number_modulo(high, low);
        number_drop(high);
        high = low;
        low = rest;
    }
    number_drop(low);
    return high;
}
