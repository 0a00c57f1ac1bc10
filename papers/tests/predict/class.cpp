// SPDX-License-Identifier: MIT
//
// The C++ template: signatures of all kinds give what the original gives; answers are computed ahead where the
// arguments repeat; exceptions reach the caller and nobody else; memoization; and switching off where it does not pay,
// which is for good: afterwards every call is the original's.
#include "predict.hpp"
#include "support/check.h"
#include "support/rng.h"

#include <cerrno>
#include <cfenv>
#include <cmath>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

namespace {

pthread_t main_thread;
uint64_t calls_elsewhere; // of an original, on another thread

void note()
{
    if (!pthread_equal(pthread_self(), main_thread))
        __atomic_fetch_add(&calls_elsewhere, 1, __ATOMIC_RELAXED);
}

uint64_t work(uint64_t state, int steps)
{
    for (int i = 0; i < steps; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(state));
    }
    return state;
}

struct point {
    double x;
    int32_t y;
    int32_t z;
};

int negative(int x)
{
    note();
    return -x;
}

point mixed(float a, int8_t b, point p)
{
    note();
    return {static_cast<double>(a) + p.x, b + p.y, p.z - b};
}

bool is_odd(unsigned x)
{
    note();
    return x % 2 == 1;
}

double touchy(double x)
{
    note();
    errno = static_cast<int>(x) % 3 == 0 ? ERANGE : errno;
    if (static_cast<int>(x) % 5 == 0)
        std::feraiseexcept(FE_OVERFLOW);
    return x + 1;
}

int throws(int x)
{
    note();
    if (x == 3)
        throw std::runtime_error("three");
    return x;
}

double sign_of(double x)
{
    note();
    return std::copysign(1.0, x);
}

double slow(double x)
{
    note();
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return static_cast<double>(work(bits, 1000) >> 11);
}

predict_options forced()
{
    predict_options options = {};
    options.mode = PREDICT_FORCED;
    options.threshold = 65;
    return options;
}

template <typename Predicted, typename Check> void until_hit(Predicted &predicted, Check &&check)
{
    uint64_t elsewhere = __atomic_load_n(&calls_elsewhere, __ATOMIC_RELAXED);
    for (int i = 0; i < 200 && predicted.counts().hits < 100; i++) {
        for (int j = 0; j < 40; j++)
            check(j % 20);
        predict_settle(predicted.core(), 1000);
    }
    CHECK_MSG(predicted.counts().hits >= 100, "no answers were computed ahead");
    CHECK(__atomic_load_n(&calls_elsewhere, __ATOMIC_RELAXED) > elsewhere);
}

void signatures()
{
    static sutler::predictor minus(negative, forced());
    until_hit(minus, [&](int i) { CHECK(minus(i - 10) == 10 - i); });
    static sutler::predictor mix(mixed, forced());
    until_hit(mix, [&](int i) {
        point is = mix(static_cast<float>(i) / 4, static_cast<int8_t>(-i), {1.5, i * 1000, -i});
        CHECK(is.x == i / 4.0 + 1.5 && is.y == i * 999 && is.z == 0);
    });
    static sutler::predictor odd(is_odd, forced());
    until_hit(odd, [&](int i) { CHECK(odd(static_cast<unsigned>(i)) == (i % 2 == 1)); });
}

void side_effects_of_the_environment()
{
    static sutler::predictor touch(touchy, forced());
    until_hit(touch, [&](int i) {
        std::feclearexcept(FE_ALL_EXCEPT);
        errno = 0;
        CHECK(touch(i) == i + 1);
        CHECK((errno == ERANGE) == (i % 3 == 0));
        CHECK((std::fetestexcept(FE_OVERFLOW) != 0) == (i % 5 == 0));
    });
}

void exceptions()
{
    static sutler::predictor thrower(throws, forced());
    int caught = 0;
    until_hit(thrower, [&](int i) {
        try {
            CHECK(thrower(i) == i);
            CHECK(i != 3);
        } catch (const std::runtime_error &) {
            CHECK(i == 3);
            caught++;
        }
    });
    CHECK(caught > 3);
}

void memoization()
{
    predict_options options = forced();
    options.memo = 64;
    static sutler::predictor remembering(touchy, options);
    struct rng rng = {5};
    for (int i = 0; i < 5000; i++) { // nobody can foresee these
        int x = static_cast<int>(rng_below(&rng, 16));
        std::feclearexcept(FE_ALL_EXCEPT);
        if (i % 2 == 0)
            std::feraiseexcept(FE_INVALID);
        errno = EBUSY;
        CHECK(remembering(x) == x + 1);
        CHECK(errno == (x % 3 == 0 ? ERANGE : EBUSY));
        CHECK((std::fetestexcept(FE_OVERFLOW) != 0) == (x % 5 == 0));
        CHECK((std::fetestexcept(FE_INVALID) != 0) == (i % 2 == 0));
    }
    predict_counts counts = remembering.counts();
    CHECK_MSG(counts.memo_hits > 1000, "only %llu of %llu", static_cast<unsigned long long>(counts.memo_hits),
              static_cast<unsigned long long>(counts.calls));
}

void bits_decide()
{
    static sutler::predictor sign(sign_of, forced());
    until_hit(sign, [&](int i) { CHECK(sign(i % 2 ? -0.0 : 0.0) == (i % 2 ? -1 : 1)); });
}

void cheap_is_off_at_once()
{
    static sutler::predictor cheap(negative);
    for (int i = 0; i < 1000; i++)
        CHECK(cheap(i % 4) == -(i % 4));
    predict_counts counts = cheap.counts();
    CHECK_MSG(counts.off && counts.calls == 64 && counts.threads == 0, "off %d after %llu calls", counts.off,
              static_cast<unsigned long long>(counts.calls));
}

template <typename Predicted, typename Argument>
bool is_off_within(uint64_t calls, bool asks_each_time, Predicted &predicted, Argument &&argument)
{
    for (; calls > 0 && !(asks_each_time && predicted.counts().off); calls--) {
        double x = argument();
        CHECK(predicted(x) == slow(x));
    }
    return predicted.counts().off;
}

predict_options any_cost()
{
    predict_options options = {};
    options.floor_ns = 1;
    return options;
}

// Whoever asks for the counts all the time changes nothing by it.  Where others have the second processor, it pays for
// nobody, and nothing is shown.
void what_pays_stays_on()
{
    int on[2] = {0, 0}; // without asking, asking
    for (int i = 0; i < 8 && on[true] == 0; i++) {
        for (bool asks : {false, true}) {
            sutler::predictor paying(slow, any_cost());
            int next = 0;
            on[asks] += !is_off_within(200000, asks, paying, [&] { return next++ % 5; });
        }
    }
    CHECK_MSG(on[true] > 0 || on[false] < 4, "off 8 times in 8 by asking, and %d without", 8 - on[false]);
}

void hopeless_is_off_soon()
{
    static sutler::predictor hopeless(slow, any_cost());
    struct rng rng = {9};
    CHECK_MSG(is_off_within(20000000, true, hopeless, [&] { return static_cast<double>(rng_next(&rng)); }), "still on");
    predict_counts counts = hopeless.counts();
    CHECK(counts.threads <= 1);
    test_say("off after %llu us of trying\n", static_cast<unsigned long long>(counts.off_after_us));
    for (int i = 0; i < 1000; i++)
        CHECK(hopeless(i % 4) == slow(i % 4));
    CHECK(hopeless.counts().calls == counts.calls);
}

// The caller comes while its answer is being computed, over and over.
void just_in_time()
{
    predict_options options = forced();
    options.ahead = 2;
    static sutler::predictor quick(slow, options);
    double right[7];
    for (int i = 0; i < 7; i++)
        right[i] = slow(i);
    for (int i = 0; i < 30000; i++) {
        CHECK(quick(i % 7) == right[i % 7]);
        work(1, i % 1500);
    }
}

int deep(int x)
{
    volatile char room[MIB];
    note();
    for (size_t i = 0; i < MIB; i += 1024)
        room[i] = static_cast<char>(x);
    return room[MIB / 2];
}

void stacks_are_as_deep()
{
    static sutler::predictor diver(deep, forced());
    until_hit(diver, [&](int i) { CHECK(diver(i) == i); });
}

void objects_end()
{
    for (int i = 0; i < 20; i++) {
        sutler::predictor brief(negative, forced());
        until_hit(brief, [&](int j) { CHECK(brief(j) == -j); });
    }
}

} // namespace

int main()
{
    test_begin(200);
    main_thread = pthread_self();
    signatures();
    side_effects_of_the_environment();
    exceptions();
    memoization();
    bits_decide();
    cheap_is_off_at_once();
    what_pays_stays_on();
    hopeless_is_off_soon();
    just_in_time();
    stacks_are_as_deep();
    objects_end();
    return 0;
}
