// SPDX-License-Identifier: MIT
//
// Why: from which cost on, and with how many arguments foreseen, does it pay to have a second thread compute a
// function's results ahead (papers/predict/)?  An operation is one call of the function and `gap` steps of other work,
// about a nanosecond each.  The arguments go round a cycle of `period` values; all but `accuracy` per cent of them are
// replaced by values that nobody can foresee.  `form`: the function itself (plain), behind a predictor that may give up
// (threaded), behind one that may not (forced: what it costs where it does not pay), the same with the results of
// former calls kept (memo).  Without it the form is what BENCH_PREDICT says, or plain: so a suite can compare the forms
// as it compares libraries.
//
// Functions: `steps`, which takes `cost` steps; and three that programs have: the regularized incomplete gamma function
// by its series (gamma), a Bessel function of order 20 (bessel), an interpolation in a table with searches (table).
#include "args.h"
#include "clock.h"
#include "predict.hpp"
#include "random.h"
#include "result.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

uint64_t cost = 1000;

uint64_t compute(uint64_t state, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(state)); // no closed form, no vectors
    }
    return state;
}

double steps_of(double x)
{
    uint64_t state;
    std::memcpy(&state, &x, sizeof state);
    return static_cast<double>(compute(state, cost) >> 11);
}

double gamma_of(double x)
{
    x = 1000 + 5 * x;
    double a = 1000 + x / 100, term = 1 / a, sum = term;
    for (int i = 1; i < 1000 && term > sum * 1e-17; i++) {
        term *= x / (a + i);
        sum += term;
    }
    return sum * std::exp(-x + a * std::log(x) - std::lgamma(a));
}

double bessel_of(double x)
{
    return jn(20, x);
}

std::vector<double> table;

double table_of(double x)
{
    double sum = 0;
    for (int dimension = 1; dimension <= 8; dimension++) {
        double wanted = x * dimension / 8;
        size_t low = 0, high = table.size() - 1;
        while (high - low > 1) {
            size_t middle = (low + high) / 2;
            (table[middle] <= wanted ? low : high) = middle;
        }
        sum += static_cast<double>(low) + (wanted - table[low]) / (table[high] - table[low]);
    }
    return sum;
}

struct {
    const char *name;
    double (*function)(double);
} const functions[] = {{"steps", steps_of}, {"gamma", gamma_of}, {"bessel", bessel_of}, {"table", table_of}};

double (*function_named(const char *name))(double)
{
    for (const auto &row : functions) {
        if (std::strcmp(row.name, name) == 0)
            return row.function;
    }
    args_reject("function", "steps, gamma, bessel or table");
}

template <typename Call> double run(Call &&call, const std::vector<double> &arguments, uint64_t gap)
{
    double sum = 0;
    uint64_t state = 1;
    for (double x : arguments) {
        sum += call(x);
        state = compute(state, gap);
    }
    return sum;
}

uint64_t ns_a_call(double (*function)(double), uint64_t gap)
{
    uint64_t begin_ns = clock_ns();
    run(function, std::vector<double>(100, 2.5), gap);
    return (clock_ns() - begin_ns) / 100 + 1;
}

} // namespace

int main(int argc, char **argv)
{
    const char *form = std::getenv("BENCH_PREDICT"), *name = "steps";
    uint64_t gap = 1000, accuracy = 95, ops = 0, ms = 100, period = 100;
    form = form != nullptr ? form : "plain";
    const struct arg args[] = {
        {"form", ARG_TEXT, &form, "plain, threaded, forced or memo"},
        {"function", ARG_TEXT, &name, "steps, gamma, bessel or table"},
        {"cost", ARG_COUNT, &cost, "steps of computation in the function `steps`, about 1 ns each"},
        {"gap", ARG_COUNT, &gap, "steps of computation between two calls"},
        {"accuracy", ARG_COUNT, &accuracy, "per cent of the arguments that can be foreseen"},
        {"period", ARG_COUNT, &period, "arguments after which they repeat"},
        {"ops", ARG_COUNT, &ops, "calls (0: as many as the plain form makes in `ms`, about)"},
        {"ms", ARG_COUNT, &ms, "how long the plain form is to take"},
    };
    ARGS_READ("predict", argc, argv, args);
    if (!period || accuracy > 100)
        args_reject("period, accuracy", "at least 1, at most 100");
    double (*function)(double) = function_named(name);
    for (int i = 0; i < 1 << 17; i++)
        table.push_back(i * 0.01 * (1 + i % 3 * 0.1));
    if (ops == 0)
        ops = ms * 1000000 / ns_a_call(function, gap);
    random_source random;
    random_seed(&random, args_seed());
    std::vector<double> arguments;
    for (uint64_t i = 0; i < ops; i++) {
        bool foreseen = random_below(&random, 100) < accuracy;
        arguments.push_back(foreseen ? 1 + static_cast<double>(i % period) * 0.37
                                     : 1 + random_below(&random, 1u << 31) * 0x1p-31 * 40);
    }
    predict_options options = predict_options_from_environment();
    options.mode = std::strcmp(form, "threaded") == 0 ? PREDICT_AUTO : PREDICT_FORCED;
    options.memo = std::strcmp(form, "memo") == 0 ? 1024 : 0;
    sutler::predictor predicted(function, options, name);
    bool plain = std::strcmp(form, "plain") == 0;

    uint64_t begin_ns = clock_ns();
    double sum = plain ? run(function, arguments, gap) : run([&](double x) { return predicted(x); }, arguments, gap);
    uint64_t ns = clock_ns() - begin_ns;

    predict_counts counts = predicted.counts();
    result_begin("predict", 1, ops, ns);
    result_text("form", form);
    result_text("function", name);
    result_count("cost", cost);
    result_count("gap", gap);
    result_count("accuracy", accuracy);
    result_real("checksum", sum);
    result_real("hit_share", static_cast<double>(counts.hits + counts.memo_hits) / static_cast<double>(ops));
    result_real("late_share", static_cast<double>(counts.late) / static_cast<double>(ops));
    result_count("off", counts.off && !plain);
    result_count("off_after_us", counts.off_after_us);
    return result_end(0);
}
