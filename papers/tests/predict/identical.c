/* SPDX-License-Identifier: MIT
 *
 * An answer computed ahead is what libm would have answered: the same bits, errno and exception flags, in each rounding
 * mode, with the flags clear or raised and errno set or not before.  Arguments come in blocks that are repeated until
 * the predictor knows them; then the second thread is waited for, and the block comes once more, from the ring.
 */
#include "predicted.h"

#include <fenv.h>

enum { BLOCK = 48, KNOWN = 3 /* the round whose answers are computed ahead */ };

struct outcome {
    uint64_t result[2];
    int error;
    int flags;
};

typedef void call_function(void *function, const uint64_t *arguments, uint64_t *result);

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float as_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static uint64_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void call_d(void *function, const uint64_t *arguments, uint64_t *result)
{
    result[0] = bits_of(((double (*)(double))function)(as_double(arguments[0])));
}

static void call_dd(void *function, const uint64_t *arguments, uint64_t *result)
{
    result[0] = bits_of(((double (*)(double, double))function)(as_double(arguments[0]), as_double(arguments[1])));
}

static void call_d_pair(void *function, const uint64_t *arguments, uint64_t *result)
{
    double sine, cosine;
    ((void (*)(double, double *, double *))function)(as_double(arguments[0]), &sine, &cosine);
    result[0] = bits_of(sine);
    result[1] = bits_of(cosine);
}

static void call_f(void *function, const uint64_t *arguments, uint64_t *result)
{
    result[0] = bits_of_float(((float (*)(float))function)(as_float(arguments[0])));
}

static void call_ff(void *function, const uint64_t *arguments, uint64_t *result)
{
    result[0] = bits_of_float(((float (*)(float, float))function)(as_float(arguments[0]), as_float(arguments[1])));
}

static void call_f_pair(void *function, const uint64_t *arguments, uint64_t *result)
{
    float sine, cosine;
    ((void (*)(float, float *, float *))function)(as_float(arguments[0]), &sine, &cosine);
    result[0] = bits_of_float(sine);
    result[1] = bits_of_float(cosine);
}

static const struct {
    const char *name;
    call_function *call;
    bool is_float;
} rows[] = {
    {"sin", call_d, false},         {"cos", call_d, false},  {"tan", call_d, false},  {"exp", call_d, false},
    {"log", call_d, false},         {"pow", call_dd, false}, {"sincos", call_d_pair, false},
    {"sinf", call_f, true},         {"cosf", call_f, true},  {"tanf", call_f, true},  {"expf", call_f, true},
    {"logf", call_f, true},         {"powf", call_ff, true}, {"sincosf", call_f_pair, true},
};

static const uint64_t doubles[] = {
    0, 0x8000000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000001234,
    0x7FF0000000000001, /* signalling */ 0xFFF4000000000000, 1, 0x8000000000000001, 0x000FFFFFFFFFFFFF,
    0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x3FF0000000000000, 0xBFF0000000000000,
    0x40862E42FEFA39EF /* exp overflows beyond */, 0x40862E42FEFA39F0, 0xC0874910D52D3051, 0xC0874910D52D3052,
    0x3FF921FB54442D18 /* pi/2 */, 0x400921FB54442D18, 0x4340000000000000, 0x7FE0000000000000, 0x3E40000000000000,
};

static const uint32_t floats[] = {
    0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC01234, 0x7F800001, 0xFFA00000, 1, 0x80000001, 0x007FFFFF,
    0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x42B17217, 0x42B17218, 0xC2CFF1B4, 0xC2CFF1B5,
    0x3FC90FDB, 0x40490FDB, 0x5A000000, 0x7F000000, 0x32000000,
};

/* Special values, then numbers of ordinary size, then any bits. */
static uint64_t argument(struct rng *rng, bool is_float, size_t i)
{
    uint64_t any = rng_next(rng);
    size_t specials = is_float ? sizeof floats / sizeof floats[0] : sizeof doubles / sizeof doubles[0];
    if (i < specials)
        return is_float ? floats[i] : doubles[i];
    if (i % 3 == 0)
        return is_float ? any >> 32 : any;
    double usual = ((double)(any >> 11) * 0x1p-53 - 0.3) * (i % 3 == 1 ? 30.0 : 1500.0);
    return is_float ? bits_of_float((float)usual) : bits_of(usual);
}

static struct outcome outcome_of(call_function *call, void *function, const uint64_t *arguments, unsigned state)
{
    struct outcome outcome = {{0, 0}, 0, 0};
    feclearexcept(FE_ALL_EXCEPT);
    if (state & 1)
        feraiseexcept(FE_ALL_EXCEPT & ~(state & 2 ? FE_INEXACT : 0));
    errno = state & 2 ? EBUSY : 0;
    call(function, arguments, outcome.result);
    outcome.error = errno;
    outcome.flags = fetestexcept(FE_ALL_EXCEPT);
    return outcome;
}

static void check_block(size_t row, void *wrapped, void *original, uint64_t arguments[BLOCK][2], int mode,
                        unsigned round)
{
    for (size_t i = 0; i < BLOCK; i++) {
        unsigned state = (unsigned)(i + round);
        struct outcome right = outcome_of(rows[row].call, original, arguments[i], state);
        struct outcome is = outcome_of(rows[row].call, wrapped, arguments[i], state);
        CHECK_MSG(
            memcmp(&right, &is, sizeof is) == 0,
            "%s(%#llx, %#llx) rounding %#x: %#llx %#llx errno %d flags %#x, should be %#llx %#llx errno %d flags %#x",
            rows[row].name, (unsigned long long)arguments[i][0], (unsigned long long)arguments[i][1], (unsigned)mode,
            (unsigned long long)is.result[0], (unsigned long long)is.result[1], is.error, (unsigned)is.flags,
            (unsigned long long)right.result[0], (unsigned long long)right.result[1], right.error,
            (unsigned)right.flags);
    }
}

static void check_function(size_t row, size_t blocks, struct rng *rng)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const char *name = rows[row].name;
    void *wrapped = dlsym(RTLD_DEFAULT, name), *original = libms(name);
    uint64_t hits = 0;
    for (size_t block = 0; block < blocks; block++) {
        uint64_t arguments[BLOCK][2];
        for (size_t i = 0; i < BLOCK; i++) {
            arguments[i][0] = argument(rng, rows[row].is_float, block * BLOCK + i);
            arguments[i][1] = argument(rng, rows[row].is_float, (size_t)rng_below(rng, 60));
        }
        for (size_t mode = 0; mode < 4; mode++) {
            CHECK(fesetround(modes[mode]) == 0);
            for (unsigned round = 0; round <= KNOWN; round++) {
                uint64_t before = counts_of(name).hits;
                check_block(row, wrapped, original, arguments, modes[mode], round);
                CHECK(fegetround() == modes[mode]);
                if (round == KNOWN)
                    hits += counts_of(name).hits - before;
                sutler_predict_settle(name, 10000);
            }
            for (size_t i = 0; i < BLOCK; i += 3) /* what was foreseen, but for the sign */
                arguments[i][0] ^= rows[row].is_float ? 0x80000000 : 0x8000000000000000;
            check_block(row, wrapped, original, arguments, modes[mode], 0);
        }
    }
    fesetround(FE_TONEAREST);
    size_t calls = blocks * BLOCK * 4;
    test_say("%s: %zu of %zu answers were computed ahead\n", name, (size_t)hits, calls);
    CHECK_MSG(hits > calls / 2, "%s: too few for a test", name);
}

int main(int argc, char **argv)
{
    test_begin(300);
    struct rng rng = {test_seed_from(NULL)};
    size_t blocks = test_option(argc, argv, "--blocks", 4);
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++)
        check_function(row, blocks, &rng);
    return 0;
}
