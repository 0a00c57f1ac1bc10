/* SPDX-License-Identifier: MIT
 *
 * Why: the continued-fraction factoriser of the malloc literature's benchmark sets (MMT ran it on a 35-digit number):
 * millions of tiny, short-lived blocks, because every arithmetic result is a number on the heap (number.h).
 *
 * Morrison and Brillhart's method: the continued fraction of sqrt(kN) yields A and Q with A^2 = +-Q (mod N) and Q below
 * 2 sqrt(kN).  Those Q that factor completely over a small set of primes are kept; by linear algebra modulo 2 some of
 * them multiply to a square y^2, with x^2 = y^2 (mod N), and the common divisor of x - y and N is a factor half of the
 * time. The factor is checked by division.  An operation is one allocated number.
 */
#include "args.h"
#include "clock.h"
#include "number.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRIMES_MAX = 1024, EXTRA = 24, SET_WORDS = (PRIMES_MAX + EXTRA + 64) / 64 };

/* One A^2 = (-1)^sign * product of primes^power (mod N). */
struct relation {
    struct number *a;
    unsigned char *power;     /* per prime; [0] is the sign */
    uint64_t odd[SET_WORDS];  /* which powers are odd */
    uint64_t from[SET_WORDS]; /* which relations were multiplied into this row */
};

static uint32_t prime[PRIMES_MAX + 1]; /* prime[0] stands for -1 */
static uint64_t primes;
static struct relation *relation;
static uint64_t relations;

static uint64_t power_modulo(uint64_t base, uint64_t exponent, uint64_t modulus)
{
    uint64_t result = 1;
    for (base %= modulus; exponent; exponent >>= 1, base = base * base % modulus) {
        if (exponent & 1)
            result = result * base % modulus;
    }
    return result;
}

static bool is_prime(uint32_t candidate)
{
    for (uint32_t d = 2; d * d <= candidate; d++) {
        if (candidate % d == 0)
            return false;
    }
    return true;
}

/* Only primes modulo which kN is a square can divide a Q. */
static void primes_choose(const struct number *kn, uint64_t wanted)
{
    primes = 1;
    for (uint32_t candidate = 2; primes <= wanted; candidate++) {
        uint32_t rest;
        if (!is_prime(candidate))
            continue;
        number_drop(number_divide_small(kn, candidate, &rest));
        if (candidate == 2 || rest == 0 || power_modulo(rest, (candidate - 1) / 2, candidate) == 1)
            prime[primes++] = candidate;
    }
}

/* Keeps the relation if q factors over the primes. */
static void relation_try(struct number *a, struct number *q, bool is_negative)
{
    unsigned char power[PRIMES_MAX + 1] = {is_negative};
    number_keep(q);
    for (uint64_t i = 1; i < primes && !number_is(q, 1); i++) {
        for (;;) {
            uint32_t rest;
            struct number *quotient = number_divide_small(q, prime[i], &rest);
            if (rest) {
                number_drop(quotient);
                break;
            }
            number_drop(q);
            q = quotient;
            power[i]++;
        }
    }
    if (number_is(q, 1)) {
        struct relation *new = &relation[relations];
        new->a = number_keep(a);
        new->power = malloc(primes);
        memcpy(new->power, power, primes);
        memset(new->odd, 0, sizeof(new->odd));
        memset(new->from, 0, sizeof(new->from));
        for (uint64_t i = 0; i < primes; i++)
            new->odd[i / 64] |= (uint64_t)(power[i] & 1) << i % 64;
        new->from[relations / 64] = 1ull << relations % 64;
        relations++;
    }
    number_drop(q);
}

static void assign(struct number **variable, struct number *value)
{
    number_drop(*variable);
    *variable = value;
}

/* Runs the expansion until there are enough relations; false if it became periodic before. */
static bool relations_collect(const struct number *n, const struct number *kn, uint64_t wanted)
{
    struct number *root = number_square_root(kn);
    struct number *p = number_new(0), *q = number_new(1), *term = number_keep(root);
    struct number *a = number_modulo(root, n), *a_before = number_new(1);
    bool is_negative = true, is_periodic = false;
    while (relations < wanted && !is_periodic) {
        struct number *product = number_multiply(term, q);
        assign(&p, number_subtract(product, p));
        number_drop(product);
        product = number_multiply(p, p);
        struct number *difference = number_subtract(kn, product);
        number_drop(product);
        assign(&q, number_divide(difference, q, NULL));
        number_drop(difference);
        relation_try(a, q, is_negative);
        is_periodic = number_is(q, 1);

        struct number *sum = number_add(root, p);
        assign(&term, number_divide(sum, q, NULL));
        number_drop(sum);
        product = number_multiply(term, a);
        sum = number_add(product, a_before);
        number_drop(product);
        number_drop(a_before);
        a_before = a;
        a = number_modulo(sum, n);
        number_drop(sum);
        is_negative = !is_negative;
    }
    number_drop(root);
    number_drop(p);
    number_drop(q);
    number_drop(term);
    number_drop(a);
    number_drop(a_before);
    return relations >= wanted;
}

static bool bit_get(const uint64_t *set, uint64_t bit)
{
    return set[bit / 64] >> bit % 64 & 1;
}

/* A factor from the relations in `from`, whose product is a square; 1 or N if this one is of no use. */
static struct number *factor_of(const struct number *n, const uint64_t *from)
{
    struct number *x = number_new(1), *y = number_new(1);
    for (uint64_t i = 0; i < relations; i++) {
        if (bit_get(from, i))
            assign(&x, number_multiply_modulo(x, relation[i].a, n));
    }
    for (uint64_t i = 1; i < primes; i++) {
        uint64_t power = 0;
        for (uint64_t j = 0; j < relations; j++)
            power += bit_get(from, j) ? relation[j].power[i] : 0;
        struct number *factor = number_new(prime[i]);
        for (; power; power -= 2)
            assign(&y, number_multiply_modulo(y, factor, n));
        number_drop(factor);
    }
    struct number *larger = number_compare(x, y) < 0 ? y : x;
    struct number *difference = number_subtract(larger, larger == x ? y : x);
    struct number *factor = number_common_divisor(difference, n);
    number_drop(difference);
    number_drop(x);
    number_drop(y);
    return factor;
}

/* Gauss modulo 2: each row that becomes empty names a set of relations whose product is a square. */
static struct number *factor_find(const struct number *n)
{
    struct number *found = NULL;
    bool *is_pivot = calloc(relations, sizeof(*is_pivot));
    for (uint64_t column = 0; column < primes; column++) {
        uint64_t pivot = 0;
        while (pivot < relations && (is_pivot[pivot] || !bit_get(relation[pivot].odd, column)))
            pivot++;
        if (pivot == relations)
            continue;
        is_pivot[pivot] = true;
        for (uint64_t row = 0; row < relations; row++) {
            if (row == pivot || !bit_get(relation[row].odd, column))
                continue;
            for (unsigned word = 0; word < SET_WORDS; word++) {
                relation[row].odd[word] ^= relation[pivot].odd[word];
                relation[row].from[word] ^= relation[pivot].from[word];
            }
        }
    }
    for (uint64_t row = 0; row < relations && !found; row++) {
        if (is_pivot[row])
            continue;
        struct number *factor = factor_of(n, relation[row].from);
        if (number_is(factor, 1) || number_compare(factor, n) == 0)
            number_drop(factor);
        else
            found = factor;
    }
    free(is_pivot);
    return found;
}

int main(int argc, char **argv)
{
    const char *decimal = "210637606452491162732956615717";
    uint64_t base = 250, multiplier = 1;
    const struct arg args[] = {
        {"n", ARG_TEXT, &decimal, "odd composite number, no square"},
        {"base", ARG_COUNT, &base, "primes to factor over, 8 to 1000"},
        {"k", ARG_COUNT, &multiplier, "multiplier: expands the root of kN, should the period of N be too short"},
    };
    ARGS_READ("cfrac", argc, argv, args);
    struct number *n = number_parse(decimal);
    if (!n || base < 8 || base > 1000 || !multiplier)
        args_reject("n, base, k", "a decimal number, 8 to 1000 primes, k at least 1");
    uint64_t begin_ns = clock_ns();
    struct number *k = number_new(multiplier);
    struct number *kn = number_multiply(k, n);
    primes_choose(kn, base);
    relation = calloc(primes + EXTRA, sizeof(*relation));
    struct number *factor = relations_collect(n, kn, primes + EXTRA) ? factor_find(n) : NULL;
    uint64_t end_ns = clock_ns();
    if (!factor)
        fprintf(stderr, "cfrac: no factor found: another k?\n");
    uint64_t errors = !factor;
    if (factor) {
        struct number *rest = number_modulo(n, factor);
        errors += !number_is(rest, 0) || number_is(factor, 1) || number_compare(factor, n) == 0;
        number_drop(rest);
    }
    for (uint64_t i = 0; i < relations; i++) {
        number_drop(relation[i].a);
        free(relation[i].power);
    }
    free(relation);
    number_drop(factor);
    number_drop(k);
    number_drop(kn);
    number_drop(n);
    result_begin("cfrac", 1, number_allocations(), end_ns - begin_ns);
    result_count("digits", strlen(decimal));
    result_count("base", base);
    return result_end(errors);
}
