/* SPDX-License-Identifier: MIT
 *
 * Why: the C++ library counts shared_ptr references without atomic instructions while a process has one thread (it asks
 * the C library).  An allocator's own thread must not change the answer.  A heap is built first (a helper may start
 * only then), then pointers are copied and dropped.  An operation is one copy with its end.
 */
#include "args.h"
#include "clock.h"
#include "heap.h"
#include "result.h"
#include "sink.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace
{
struct Thing {
    explicit Thing(uint64_t number) : value(number)
    {
    }
    uint64_t value;
};
} // namespace

int main(int argc, char **argv)
{
    uint64_t ops = 100000000, count = 1000, heap_mib = 64, settle_ms = 50;
    const struct arg args[] = {
        {"ops", ARG_COUNT, &ops, "copies"},
        {"count", ARG_COUNT, &count, "pointers to copy from"},
        {"heap_mib", ARG_COUNT, &heap_mib, "live heap built first"},
        {"settle_ms", ARG_COUNT, &settle_ms, "pause between the heap and the loop"},
    };
    ARGS_READ("shared_ptr", argc, argv, args);
    if (!count)
        args_reject("count", "at least 1");
    heap_block *heap = heap_fill(heap_mib, args_seed());
    std::vector<std::shared_ptr<Thing>> things;
    for (uint64_t i = 0; i < count; i++)
        things.push_back(std::make_shared<Thing>(i));
    clock_sleep_ms(settle_ms);

    uint64_t sum = 0, expected = 0, errors = 0;
    const uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0, next = 0; i < ops; i++) {
        std::shared_ptr<Thing> copy = things[next];
        sink(copy.get());
        sum += copy->value;
        next = next + 1 == count ? 0 : next + 1;
    }
    const uint64_t end_ns = clock_ns();
    for (uint64_t i = 0; i < count; i++) {
        expected += i * (ops / count + (i < ops % count));
        errors += things[i].use_count() != 1;
    }
    errors += sum != expected;
    errors += heap_check(heap);
    result_begin("shared_ptr", 1, ops, end_ns - begin_ns);
    result_count("heap_mib", heap_mib);
    return result_end(errors);
}
