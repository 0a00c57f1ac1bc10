/* SPDX-License-Identifier: MIT
 *
 * The C++ operators, all of them, called as functions so that the compiler can neither elide nor pair them.  What C++
 * demands beyond malloc: never NULL from the throwing forms, the new_handler called again and again until it gives up
 * or memory appears, std::bad_alloc when there is none, nothrow forms that swallow what the handler throws.
 */
#include "support/family.h"

#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

static const std::size_t sizes[] = {0, 1, 7, 8, 16, 24, 100, 1000, 4096, 10000, 65536, 300000, 5000000};
static const std::size_t impossible = SIZE_MAX / 2 + 4096;

static void plain_forms()
{
    for (std::size_t size : sizes) {
        void *a = ::operator new(size);
        void *b = ::operator new[](size);
        void *c = ::operator new(size, std::nothrow);
        void *d = ::operator new[](size, std::nothrow);
        void *blocks[] = {a, b, c, d};
        for (void *block : blocks) {
            CHECK(block != nullptr && reinterpret_cast<std::uintptr_t>(block) % __STDCPP_DEFAULT_NEW_ALIGNMENT__ == 0);
            CHECK(malloc_usable_size(block) >= size);
            memset(block, 1, size);
        }
        ::operator delete(a);
        ::operator delete[](b, size);
        ::operator delete(c, std::nothrow);
        ::operator delete[](d, std::nothrow);
        ::operator delete(::operator new(size), size);
        ::operator delete[](::operator new[](size));
    }
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    ::operator delete(nullptr, std::size_t{8});
    ::operator delete(nullptr, std::align_val_t{64});
}

static void aligned_forms()
{
    for (std::size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        const std::align_val_t align{alignment};
        for (std::size_t size : sizes) {
            void *a = ::operator new(size, align);
            void *b = ::operator new[](size, align);
            void *c = ::operator new(size, align, std::nothrow);
            void *d = ::operator new[](size, align, std::nothrow);
            void *e = ::operator new(size, align);
            void *f = ::operator new[](size, align);
            void *blocks[] = {a, b, c, d, e, f};
            for (void *block : blocks) {
                CHECK(block != nullptr && reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
                CHECK(malloc_usable_size(block) >= size);
            }
            ::operator delete(a, align);
            ::operator delete[](b, align);
            ::operator delete(c, align, std::nothrow);
            ::operator delete[](d, align, std::nothrow);
            ::operator delete(e, size, align);
            ::operator delete[](f, size, align);
        }
    }
}

template <typename Call> static bool throws_bad_alloc(Call call)
{
    try {
        void *block = opaque(call());
        CHECK_MSG(block == nullptr, "an impossible size gave %p", block);
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

static void exhaustion_throws()
{
    const std::align_val_t align{64};
    CHECK(throws_bad_alloc([] { return ::operator new(opaque_size(impossible)); }));
    CHECK(throws_bad_alloc([] { return ::operator new[](opaque_size(impossible)); }));
    CHECK(throws_bad_alloc([&] { return ::operator new(opaque_size(impossible), align); }));
    CHECK(throws_bad_alloc([&] { return ::operator new[](opaque_size(impossible), align); }));
    CHECK(!throws_bad_alloc([] { return ::operator new(opaque_size(impossible), std::nothrow); }));
    CHECK(!throws_bad_alloc([] { return ::operator new[](opaque_size(impossible), std::nothrow); }));
    CHECK(!throws_bad_alloc([&] { return ::operator new(opaque_size(impossible), align, std::nothrow); }));
    CHECK(!throws_bad_alloc([&] { return ::operator new[](opaque_size(impossible), align, std::nothrow); }));
}

static int handler_calls;

static void giving_up_handler()
{
    if (++handler_calls == 3)
        std::set_new_handler(nullptr);
}

struct handler_failure : std::bad_alloc {
};

static void throwing_handler()
{
    handler_calls++;
    throw handler_failure();
}

static void new_handler_is_honoured()
{
    const std::align_val_t align{128};
    handler_calls = 0;
    std::set_new_handler(giving_up_handler);
    CHECK(throws_bad_alloc([] { return ::operator new(opaque_size(impossible)); }));
    CHECK_MSG(handler_calls == 3, "the new_handler was called %d times, not 3", handler_calls);
    handler_calls = 0;
    std::set_new_handler(giving_up_handler);
    CHECK(throws_bad_alloc([&] { return ::operator new(opaque_size(impossible), align); }));
    CHECK(handler_calls == 3);
    handler_calls = 0;
    std::set_new_handler(giving_up_handler);
    CHECK(!throws_bad_alloc([] { return ::operator new[](opaque_size(impossible), std::nothrow); }));
    CHECK_MSG(handler_calls == 3, "nothrow: the new_handler was called %d times, not 3", handler_calls);

    std::set_new_handler(throwing_handler);
    handler_calls = 0;
    bool own = false;
    try {
        opaque(::operator new(opaque_size(impossible)));
    } catch (const handler_failure &) {
        own = true;
    }
    CHECK_MSG(own && handler_calls == 1, "what the new_handler throws must reach the caller");
    CHECK(!throws_bad_alloc([] { return ::operator new(opaque_size(impossible), std::nothrow); }));
    CHECK(handler_calls == 2);
    /* malloc itself knows no handler. */
    CHECK(opaque(malloc(opaque_size(impossible))) == nullptr && handler_calls == 2);
    std::set_new_handler(nullptr);
}

struct alignas(256) wide {
    char bytes[300];
};

static void containers()
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([t] {
            std::map<int, std::string> map;
            std::vector<std::unique_ptr<wide>> wides;
            for (int i = 0; i < 20000; i++) {
                map[i * 7919 % 5000] = std::string(static_cast<std::size_t>(i % 200), static_cast<char>('a' + t));
                if (i % 50 == 0) {
                    wides.push_back(std::make_unique<wide>());
                    CHECK(reinterpret_cast<std::uintptr_t>(wides.back().get()) % 256 == 0);
                }
            }
            for (const auto &row : map)
                CHECK(row.second.find_first_not_of(static_cast<char>('a' + t)) == std::string::npos);
        });
    }
    for (auto &thread : threads)
        thread.join();
}

int main()
{
    test_begin(60);
    plain_forms();
    aligned_forms();
    exhaustion_throws();
    new_handler_is_honoured();
    containers();
    return 0;
}
