# SPDX-License-Identifier: MIT
"""The three real programs of the demo, with inputs made here from a fixed seed.

A compiler, a text tool and an interpreter: three programs everybody has, that call malloc in three different ways
(large numbers of small live objects; strings in a hash table; boxed values that come and go).
"""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path
from typing import Callable

from .rounds import Job

TEXT_BYTES = 16 << 20
SEED = 20100614


def cpp_source() -> str:
    """A translation unit that is mostly templates: what a C++ compiler really chews on."""
    lines = [
        "#include <algorithm>",
        "#include <functional>",
        "#include <map>",
        "#include <memory>",
        "#include <regex>",
        "#include <sstream>",
        "#include <string>",
        "#include <tuple>",
        "#include <unordered_map>",
        "#include <vector>",
        "template <int N> struct Tree { Tree<N - 1> left; std::map<int, std::tuple<char, short, long>> own;",
        "  template <class F> auto visit(F f) { left.visit(f); return f(N, own); } };",
        "template <> struct Tree<0> { template <class F> void visit(F) {} };",
    ]
    for i in range(24):
        lines.append(
            f"struct Key{i} {{ int a; std::string b; bool operator<(const Key{i} &o) const "
            f"{{ return std::tie(a, b) < std::tie(o.a, o.b); }} }};\n"
            f"int work{i}(const std::vector<std::string> &words) {{\n"
            f"  std::map<Key{i}, std::unique_ptr<std::vector<std::pair<int, std::string>>>> index;\n"
            f'  std::regex pattern("[a-z]+{i}"); int total = 0;\n'
            f"  for (auto &w : words) if (std::regex_match(w, pattern)) {{\n"
            f"    auto &slot = index[Key{i}{{{i}, w}}];\n"
            f"    if (!slot) slot = std::make_unique<std::vector<std::pair<int, std::string>>>();\n"
            f"    slot->emplace_back({i}, w); }}\n"
            f"  std::function<int(int)> twist = [&](int x) {{ return x * {i + 1} + (int)index.size(); }};\n"
            f"  for (auto &e : index) {{ std::sort(e.second->begin(), e.second->end()); total += twist(e.first.a); }}\n"
            f"  Tree<{i + 3}> tree; tree.visit([&](int n, auto &own) {{ total += n + (int)own.size(); return n; }});\n"
            f"  return total;\n}}"
        )
    return "\n".join(lines) + "\n"


def _text(path: Path) -> None:
    """Words in the proportions of natural text: few very common, very many rare."""
    source = random.Random(SEED)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = [
        "".join(source.choices(letters, weights=range(26, 0, -1), k=source.randint(2, 12))) for _ in range(60_000)
    ]
    weights = [1.0 / (rank + 2) for rank in range(len(vocabulary))]
    with path.open("w") as stream:
        written = 0
        while written < TEXT_BYTES:
            words = source.choices(vocabulary, weights=weights, k=12_000)
            for start in range(0, len(words), 12):
                written += stream.write(" ".join(words[start : start + 12]) + "\n")


_AWK = """{ for (i = 1; i <= NF; i++) { count[$i]++; pair[prev " " $i]++; prev = $i } }
END { for (w in count) print count[w], w | "LC_ALL=C sort -k1,1nr -k2,2 | head -n 1000"
n = 0; for (p in pair) n++; print n, "pairs" }
"""

_PERL = """my $prev = ''; while (<>) { for my $w (split) { $count{$w}++; $pair{"$prev $w"}++; $prev = $w } }
print scalar(keys %pair), " pairs\\n"; my $n = 0;
for my $w (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count) {
print "$count{$w} $w\\n"; last if ++$n >= 1000 }
"""

PYTHON = '''"""Parse, transform, index and write JSON records."""
import hashlib, json, random
source = random.Random(7)
records = [{"id": i, "name": "user%d" % source.randrange(10**6), "tags": [str(source.randrange(999)) for _ in range(6)],
            "score": source.random(), "next": {"a": i * 3, "b": [i, i + 1, str(i)]}} for i in range(60000)]
digest = hashlib.sha256()
for turn in range(3):
    text = json.dumps(records)
    records = json.loads(text)
    index = {}
    for record in records:
        for tag in record["tags"]:
            index.setdefault(tag, []).append((record["score"], record["name"]))
    for tag in sorted(index):
        index[tag].sort()
        digest.update(repr(index[tag][:5]).encode())
    records = [dict(record, id=record["id"] + turn, name=record["name"].upper()) for record in records]
print(len(text), digest.hexdigest())
'''


def words_ready(folder: Path) -> bool:
    text = folder / "words.txt"
    return text.exists() and TEXT_BYTES <= text.stat().st_size < TEXT_BYTES + (1 << 20)


def write_words(folder: Path) -> None:
    """The text and the two programs that count it; the text is kept when it is there."""
    if not words_ready(folder):
        _text(folder / "words.part")
        (folder / "words.part").replace(folder / "words.txt")
    (folder / "count.awk").write_text(_AWK)
    (folder / "count.pl").write_text(_PERL)


def demo_jobs(folder: Path, say: Callable[[str], None]) -> list[Job]:
    """Writes the inputs (once) and returns the jobs whose programs exist here."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs: list[Job] = []
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler:
        (folder / "unit.cpp").write_text(cpp_source())
        result = folder / "unit.o"
        jobs.append(
            Job(
                f"{Path(compiler).name}: compile a C++ file",
                (compiler, "-std=c++17", "-O1", "-c", "unit.cpp", "-o", "unit.o"),
                cwd=folder,
                outputs=(result,),
                prepare=lambda: result.unlink(missing_ok=True),
            )
        )
    if not words_ready(folder):
        say(f"writing {TEXT_BYTES >> 20} MiB of text for the word count (once)")
    write_words(folder)
    if shutil.which("gawk"):
        jobs.append(
            Job("gawk: count words and pairs", (shutil.which("gawk") or "", "-f", "count.awk", "words.txt"), cwd=folder)
        )
    elif shutil.which("perl"):
        jobs.append(
            Job("perl: count words and pairs", (shutil.which("perl") or "", "count.pl", "words.txt"), cwd=folder)
        )
    (folder / "records.py").write_text(PYTHON)
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    jobs.append(
        Job(
            "python3: JSON records",
            (python, "-s", "-S", "records.py"),
            cwd=folder,
            environment={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "1"},
        )
    )
    return jobs
