// SPDX-License-Identifier: MIT
// A translation unit that makes a C++ compiler work: recursive templates over the standard containers.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct node {
    using next = node<N - 1>;
    std::map<int, std::vector<std::tuple<int, std::string, std::integral_constant<int, N>>>> table;
    std::variant<int, std::string, std::vector<std::integral_constant<int, N>>> value;
    next inner;
    long walk(long seed)
    {
        for (int i = 0; i < 3; i++)
            table[i].emplace_back(i, std::to_string(seed + N), std::integral_constant<int, N>());
        std::function<long(long)> f = [&](long x) { return x * 31 + static_cast<long>(table.size()) + N; };
        value = std::to_string(f(seed));
        return inner.walk(f(seed) % 1000003);
    }
};

template <> struct node<0> {
    long walk(long seed)
    {
        return seed;
    }
};

int main()
{
    auto root = std::make_unique<node<25>>();
    std::unordered_map<std::string, std::set<int>> words;
    const std::string text = "one two three two one two";
    const std::regex word("[a-z]+");
    int at = 0;
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i)
        words[i->str()].insert(at++);
    std::cout << root->walk(7) << ' ' << words["two"].size() << '\n';
    return 0;
}
