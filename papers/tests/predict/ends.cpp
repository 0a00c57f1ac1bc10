// SPDX-License-Identifier: MIT
//
// How a process ends while the second thread computes, one way a run:
//
//   exits        exit() destroys what the function uses only when nobody computes any more
//   untold       children of _Fork, for whom no handlers ran, end by exit() and by threads that end
//   leave_first  main ends first, and it was another thread that made the first predictor
#include "predict.hpp"
#include "support/check.h"

#include <atomic>
#include <csignal>
#include <pthread.h>
#include <sys/wait.h>

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

void *calls_once(void *predicted)
{
    CHECK((*static_cast<sutler::predictor<double(double)> *>(predicted))(1) == slow(1));
    return nullptr;
}

void untold()
{
    static table early;
    in_use = &early;
    static sutler::predictor predicted(slow, forced());
    until_hit(predicted);
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 40; j++) // the second thread is in the middle of it
            predicted(j % 10);
        int status;
        pid_t child = _Fork();
        if (child == 0) {
            alarm(20);
            pthread_t thread;
            if (i % 2 == 0)
                CHECK(!pthread_create(&thread, nullptr, calls_once, &predicted) && !pthread_join(thread, nullptr));
            CHECK(predicted(2) == slow(2));
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_MSG(status == 0, "child %d ended with status %#x", i, static_cast<unsigned>(status));
    }
    exit(0);
}

void *lives_on(void *unused)
{
    static table early;
    in_use = &early;
    until_hit(*new sutler::predictor(slow, forced()));
    return unused;
}

void leave_first()
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, nullptr, lives_on, nullptr) == 0);
        pthread_exit(nullptr);
    }
    int status = -1;
    for (int i = 0; i < 200 && waitpid(child, &status, WNOHANG) == 0; i++)
        usleep(100000);
    if (status == -1)
        kill(child, SIGKILL);
    CHECK_MSG(status == 0, "the process does not end");
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
    } cases[] = {{"exits", exits}, {"untold", untold}, {"leave_first", leave_first}};
    for (auto &a_case : cases) {
        if (strcmp(argv[1], a_case.name) == 0)
            a_case.run();
    }
    return 1;
}
