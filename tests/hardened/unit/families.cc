// SPDX-License-Identifier: MIT
//
// Correct C++ programs, under SUTLER_HARDEN=family and all: what each form of new returns, of any size, its own delete
// takes without a word, and free() and the other deletes do not.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t sizes[] = {1, 100, 5000, 200000, std::size_t(3) << 20, std::size_t(64) << 20};
constexpr std::align_val_t alignments[] = {std::align_val_t(64), std::align_val_t(4096), std::align_val_t(1 << 21)};

[[noreturn]] void fail(const char *what, std::size_t size)
{
    std::fprintf(stderr, "FAILED: %s, %zu bytes\n", what, size);
    _exit(1);
}

void *touched(void *p, std::size_t size)
{
    if (p == nullptr)
        fail("no memory", size);
    static_cast<char *>(p)[size - 1] = 1;
    return p;
}

void pairs(std::size_t n)
{
    operator delete(touched(operator new(n), n));
    operator delete[](touched(operator new[](n), n));
    operator delete(touched(operator new(n, std::nothrow), n));
    operator delete[](touched(operator new[](n, std::nothrow), n));
    operator delete(touched(operator new(n, std::nothrow), n), std::nothrow);
    std::free(touched(std::malloc(n), n));
    std::free(touched(std::realloc(touched(std::malloc(n), n), 2 * n), 2 * n));
}

void aligned_pairs(std::size_t n, std::align_val_t alignment)
{
    operator delete(touched(operator new(n, alignment), n), alignment);
    operator delete[](touched(operator new[](n, alignment), n), alignment);
    operator delete(touched(operator new(n, alignment, std::nothrow), n), alignment);
    operator delete[](touched(operator new[](n, alignment, std::nothrow), n), alignment);
}

// It takes its buffer by new (nothrow), and gives it back by delete.
void sort()
{
    std::vector<int> numbers(100000);
    for (std::size_t i = 0; i < numbers.size(); i++)
        numbers[i] = static_cast<int>(i * 7919 % numbers.size());
    std::stable_sort(numbers.begin(), numbers.end());
    if (!std::is_sorted(numbers.begin(), numbers.end()))
        fail("not sorted", 0);
}

template <typename Deed> void expect_caught(const char *what, std::size_t size, Deed deed)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        close(2);
        deed();
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        fail(what, size);
}

void mismatches(std::size_t n)
{
    expect_caught("delete for malloc", n, [n] { operator delete(std::malloc(n)); });
    expect_caught("delete for new[]", n, [n] { operator delete(operator new[](n)); });
    expect_caught("free for new (nothrow)", n, [n] { std::free(operator new(n, std::nothrow)); });
    expect_caught("delete for new[] (nothrow)", n, [n] { operator delete(operator new[](n, std::nothrow)); });
    expect_caught("realloc of new", n, [n] { std::free(std::realloc(operator new(n), 2 * n)); });
}

} // namespace

int main()
{
    for (std::size_t n : sizes) {
        pairs(n);
        for (std::align_val_t alignment : alignments)
            aligned_pairs(n, alignment);
    }
    sort();
    for (std::size_t n : sizes)
        mismatches(n);
    return 0;
}
