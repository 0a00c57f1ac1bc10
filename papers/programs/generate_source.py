#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a translation unit for the compile rows (the thesis timed gcc and llvm compiling).

A compiler's heap is its trees and tables, so the unit has many functions, types and (in C++) templates to instantiate
rather than long ones.  The text depends on the arguments alone, so the compiler's output can be compared between runs:

    generate_source.py cpp --functions 60 > unit.cpp
"""

import argparse
import random

C_HEAD = """\
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
"""

CPP_HEAD = """\
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
"""

OPERATORS = ["+", "-", "*", "^", "&", "|"]


def expression(choose: random.Random, names: list[str], depth: int) -> str:
    if depth == 0:
        return choose.choice([*names, str(choose.randrange(1, 1000))])
    left = expression(choose, names, depth - 1)
    right = expression(choose, names, depth - 1)
    return f"({left} {choose.choice(OPERATORS)} {right})"


def c_struct(choose: random.Random, number: int) -> str:
    fields = [f"    uint{choose.choice([8, 16, 32, 64])}_t field_{i};" for i in range(choose.randrange(3, 12))]
    return "\n".join([f"struct record_{number} {{", *fields, f"    struct record_{number} *next;", "};"])


def c_function(choose: random.Random, number: int) -> str:
    names = ["a", "b", "c", "sum"]
    cases = "\n".join(
        f"        case {i}:\n            sum ^= {expression(choose, names, 4)};\n            break;"
        for i in range(choose.randrange(4, 12))
    )
    call = f"        sum += function_{choose.randrange(number)}(b, c, a);\n" if number else ""
    return f"""\
uint64_t function_{number}(uint64_t a, uint64_t b, uint64_t c);
uint64_t function_{number}(uint64_t a, uint64_t b, uint64_t c)
{{
    uint64_t sum = {expression(choose, names[:3], 5)};
    struct record_{number} *list = NULL;
    for (uint64_t i = 0; i < (a & 15); i++) {{
        struct record_{number} *record = malloc(sizeof(*record));
        memset(record, (int)i, sizeof(*record));
        record->next = list;
        list = record;
        switch (sum % 13) {{
{cases}
        }}
{call}    }}
    while (list) {{
        struct record_{number} *next = list->next;
        sum += list->field_0;
        free(list);
        list = next;
    }}
    return sum;
}}
"""


def cpp_class(choose: random.Random, number: int) -> str:
    base = f"shape<{choose.randrange(4)}>"
    return f"""\
template <int N> struct node_{number} {{
    cell_array<uint64_t, N> cells;
    uint64_t total() const {{ return cells.sum() + node_{number}<N - 1>().total(); }}
}};
template <> struct node_{number}<0> {{
    uint64_t total() const {{ return {number}; }}
}};
class thing_{number} : public {base} {{
  public:
    uint64_t area(uint64_t a, uint64_t b) const override
    {{
        return {expression(choose, ["a", "b", "weight"], 4)} + node_{number}<{choose.randrange(6, 14)}>().total();
    }}
    std::map<std::string, std::vector<uint64_t>> table;
    uint64_t weight = {number};
}};
"""


def cpp_function(choose: random.Random, number: int) -> str:
    kind = choose.choice(["std::map<uint64_t, thing_%d>", "std::unordered_map<uint64_t, std::shared_ptr<thing_%d>>"])
    kind %= number
    value = f"std::make_shared<thing_{number}>()" if "shared" in kind else f"thing_{number}()"
    arrow = "->" if "shared" in kind else "."
    return f"""\
uint64_t function_{number}(uint64_t a, uint64_t b)
{{
    {kind} things;
    std::vector<std::function<uint64_t(uint64_t)>> steps;
    for (uint64_t i = 0; i < (a & 7); i++) {{
        things[i] = {value};
        things[i]{arrow}table["key" + std::to_string(i)].push_back(b);
        steps.push_back([i, b](uint64_t c) {{ return {expression(choose, ["i", "b", "c"], 4)}; }});
    }}
    std::sort(steps.begin(), steps.end(), [a](const auto &x, const auto &y) {{ return x(a) < y(a); }});
    uint64_t sum = 0;
    for (const auto &entry : things)
        sum += entry.second{arrow}area(a, b);
    for (const auto &step : steps)
        sum ^= step(sum);
    return sum;
}}
"""


CPP_COMMON = """
template <typename T, int N> struct cell_array {
    T cell[N] = {};
    T sum() const
    {
        T total = 0;
        for (const T &value : cell)
            total += value;
        return total;
    }
};
template <int K> struct shape {
    virtual ~shape() = default;
    virtual uint64_t area(uint64_t a, uint64_t b) const = 0;
};
"""


def unit(language: str, functions: int, seed: int) -> str:
    choose = random.Random(seed)
    parts: list[str] = []
    if language == "c":
        parts.append(C_HEAD)
        for number in range(functions):
            parts += [c_struct(choose, number), c_function(choose, number)]
    else:
        parts += [CPP_HEAD, CPP_COMMON]
        for number in range(functions):
            parts += [cpp_class(choose, number), cpp_function(choose, number)]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("language", choices=["c", "cpp"])
    parser.add_argument("--functions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(unit(arguments.language, arguments.functions, arguments.seed), end="")


if __name__ == "__main__":
    main()
