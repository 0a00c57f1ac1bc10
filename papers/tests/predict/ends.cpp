// SPDX-License-Identifier: MIT
//
// How a process ends while the second thread computes, one way a run:
//
//   exits    exit() destroys what the function uses only when nobody computes any more
#include "predict.hpp"
#include "support/check.h"

#include <atomic>

namespace {

struct table {
    std::atomic<double> factor{2};
    ~table()
    {
        factor = 0;
        usleep(100000);
    }
} *in_use;

double read_factor()
{
    double factor = in_use->factor;
    CHECK_MSG(factor == 2, "the function runs without its table");
    return factor;
}

// Takes about half a millisecond.
double slow(double x)
{
    volatile double sum = x * read_factor();
    for (int i = 0; i < 300000; i++)
        sum = sum + 1;
    return sum + read_factor();
}

predict_options forced()
{
    predict_options options = {};
    options.mode = PREDICT_FORCED;
    options.threshold = 65;
    options.ahead = 256;
    return options;
}

// From here on the second thread has work for a tenth of a second.
template <typename Predicted> void until_hit(Predicted &predicted)
{
    for (int i = 0; i < 5000 && predicted.counts().hits == 0; i++)
        CHECK(predicted(i % 10) == slow(i % 10));
    CHECK_MSG(predicted.counts().hits > 0, "no answer was computed ahead");
}

void exits()
{
    static sutler::predictor predicted(slow, forced());
    static table made_later; // and so destroyed before the predictor
    in_use = &made_later;
    until_hit(predicted);
    exit(0);
}

} // namespace

int main(int argc, char **argv)
{
    test_watchdog(100);
    CHECK(argc == 2);
    const struct {
        const char *name;
        void (*run)();
    } cases[] = {{"exits", exits}};
    for (auto &a_case : cases) {
        if (strcmp(argv[1], a_case.name) == 0)
            a_case.run();
    }
    return 1;
}
