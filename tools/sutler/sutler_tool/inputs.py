# SPDX-License-Identifier: MIT
"""Inputs of the real programs, made here from fixed seeds: nothing is fetched, and every machine reads the same."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Callable

from . import workloads
from .paths import require_tree


def cpp(folder: Path) -> None:
    (folder / "unit.cpp").write_text(workloads.cpp_source())


def c(folder: Path) -> None:
    """A long C file of small functions with loops, switches and structs."""
    source = random.Random(3)
    lines = ["struct item { int key; double weight; struct item *next; };", "extern int sink(int, double);"]
    for i in range(350):
        cases = "\n".join(
            f"    case {k}: total += (x ^ {source.randrange(1 << 16)}) * {k + 1}; break;" for k in range(8)
        )
        lines.append(
            f"int step{i}(int x, struct item *list) {{\n  int total = {i};\n"
            f"  for (int n = 0; n < x; n++) {{\n    switch ((x + n) & 7) {{\n{cases}\n    }}\n"
            f"    for (struct item *at = list; at; at = at->next)\n"
            f"      total += sink(at->key + n, at->weight * {i}.5);\n  }}\n"
            f"  return total{f' + step{i - 1}(x - 1, list)' if i % 5 else ''};\n}}"
        )
    (folder / "unit.c").write_text("\n".join(lines) + "\n")


def words(folder: Path) -> None:
    workloads.write_words(folder)


def python(folder: Path) -> None:
    (folder / "records.py").write_text(workloads.PYTHON)


def lua(folder: Path) -> None:
    (folder / "tables.lua").write_text(
        """local seed = 42
local function draw(n) seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n end
local index, order = {}, {}
for turn = 1, 3 do
  for i = 1, 150000 do
    local key = "k" .. draw(60000)
    local slot = index[key]
    if not slot then slot = {count = 0, list = {}}; index[key] = slot; order[#order + 1] = key end
    slot.count = slot.count + 1
    slot.list[#slot.list % 16 + 1] = key .. ":" .. i
  end
end
table.sort(order)
local total, text = 0, {}
for _, key in ipairs(order) do total = total + index[key].count; text[#text + 1] = key:upper() end
print(#order, total, #table.concat(text, ","))
"""
    )


def sql(folder: Path) -> None:
    (folder / "work.sql").write_text(
        """CREATE TABLE item (id INTEGER PRIMARY KEY, owner INTEGER, name TEXT, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250000)
INSERT INTO item SELECT i, (i * 7919) % 5003, 'item-' || ((i * 104729) % 250007), (i * 31 % 1000) / 10.0 FROM n;
CREATE INDEX by_owner ON item (owner);
CREATE INDEX by_name ON item (name);
SELECT count(*), sum(price) FROM item;
SELECT owner, count(*) AS c, group_concat(name) FROM item GROUP BY owner ORDER BY c DESC, owner LIMIT 20;
SELECT a.name, b.name FROM item a JOIN item b ON a.owner = b.owner AND a.id < b.id
  WHERE a.id % 997 = 0 ORDER BY 1, 2 LIMIT 50;
UPDATE item SET name = upper(name) WHERE id % 3 = 0;
DELETE FROM item WHERE id % 5 = 0;
SELECT count(*), min(name), max(name) FROM item;
"""
    )


def smt(folder: Path) -> None:
    """Ten jobs on ten machines within ever longer limits, and a factorisation in bit vectors."""
    source = random.Random(11)
    count = 10
    names = [[f"t_{j}_{m}" for m in range(count)] for j in range(count)]
    length = [[source.randint(1, 9) for _ in range(count)] for _ in range(count)]
    lines = ["(set-option :smt.random_seed 1)"]
    for j in range(count):
        for m in range(count):
            lines += [f"(declare-const {names[j][m]} Int)", f"(assert (>= {names[j][m]} 0))"]
        order = source.sample(range(count), count)
        for before, after in zip(order, order[1:]):
            lines.append(f"(assert (>= {names[j][after]} (+ {names[j][before]} {length[j][before]})))")
    for m in range(count):
        for a in range(count):
            for b in range(a):
                first, second = names[a][m], names[b][m]
                lines.append(
                    f"(assert (or (>= {first} (+ {second} {length[b][m]})) (>= {second} (+ {first} {length[a][m]}))))"
                )
    for limit in range(56, 100, 4):
        bounds = " ".join(f"(<= (+ {names[j][m]} {length[j][m]}) {limit})" for j in range(count) for m in range(count))
        lines += ["(push)", f"(assert (and {bounds}))", "(check-sat)", "(pop)"]
    lines += ["(reset)", "(declare-const p (_ BitVec 30))", "(declare-const q (_ BitVec 30))"]
    lines += [
        "(assert (= (bvmul p q) (_ bv268369921 30)))",
        "(assert (bvult p (_ bv32768 30)))",
        "(assert (bvult q (_ bv32768 30)))",
    ]
    lines += ["(assert (bvult (_ bv2 30) p))", "(assert (bvule p q))", "(check-sat)"]
    (folder / "work.smt2").write_text("\n".join(lines) + "\n")


def postscript(folder: Path) -> None:
    source = random.Random(5)
    lines = ["%!PS"]
    for page in range(40):
        lines.append("/Times-Roman findfont 9 scalefont setfont")
        for row in range(70):
            text = " ".join("".join(source.choices("abcdefghij klmnop", k=8)) for _ in range(9))
            lines.append(f"40 {770 - row * 10} moveto ({text}) show")
        for _ in range(400):
            points = [source.randrange(40, 560) for _ in range(6)]
            lines.append(
                f"newpath {points[0]} {points[1]} moveto "
                f"{points[2]} {points[3]} {points[4]} {points[5]} 300 300 curveto stroke"
            )
        lines.append("showpage")
    (folder / "pages.ps").write_text("\n".join(lines) + "\n")


def node(folder: Path) -> None:
    (folder / "records.js").write_text(
        """let seed = 1;
const draw = (n) => { seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff; return seed % n; };
let total = 0;
for (let turn = 0; turn < 6; turn++) {
  const records = [];
  for (let i = 0; i < 40000; i++)
    records.push({ id: i, name: 'user' + draw(1e6), tags: [draw(99), draw(99), String(draw(1e4))] });
  const text = JSON.stringify(records);
  const index = new Map();
  for (const record of JSON.parse(text)) for (const tag of record.tags) {
    if (!index.has(tag)) index.set(tag, []);
    index.get(tag).push(Buffer.from(record.name));
  }
  for (const list of index.values()) total += Buffer.concat(list).length;
}
console.log(total);
"""
    )


_PERL = """my %seen; my @kept;
for my $turn (1 .. $ARGV[0]) {
  for my $i (1 .. 1500) {
    my @words = map { "w" . ($i * $_ * 7919 % 1009) } 1 .. 6;
    $seen{$_}++ for @words;
    push @kept, [join(",", sort @words), length $i];
  }
  @kept = sort { $a->[0] cmp $b->[0] } @kept; $#kept = 499;
}
print scalar(keys %seen), " $kept[7][0]\\n";
"""
_PYTHON = """import json, sys
records = [{"id": i, "tags": [str(i * k % 997) for k in range(5)]} for i in range(300)]
for turn in range(int(sys.argv[1])):
    records = sorted(json.loads(json.dumps(records)), key=lambda r: (r["tags"], r["id"]))
print(len(json.dumps(records)))
"""
_RUBY = """seen = Hash.new(0); kept = []
ARGV[0].to_i.times { 1500.times { |i| words = (1..6).map { |k| "w#{i * k * 7919 % 1009}" }; words.each { |w| seen[w] += 1 }
kept << words.sort.join(",") }; kept = kept.sort.first(500) }
puts seen.size, kept[7]
"""
_SQL = """CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO t SELECT i, (i * 7919) % 1007, printf('%d-%s', i % 97, hex(i * 31)) FROM n;
CREATE INDEX ta ON t(a);
SELECT a, count(*) c, group_concat(b) FROM t GROUP BY a ORDER BY c DESC, a LIMIT 3;
"""


def papers(folder: Path) -> None:
    """Small inputs of the suite `engines`: run under callgrind, or with a message to another thread at each call."""
    generator = require_tree() / "papers" / "programs" / "generate_source.py"
    for name, *words in (("papers.c", "c", "8"), ("papers_small.c", "c", "2"), ("papers.cpp", "cpp", "1")):
        unit = subprocess.run([sys.executable, generator, words[0], "--functions", words[1]], capture_output=True, check=True)
        (folder / name).write_bytes(unit.stdout)
    item = '<item key="{0}" name="n{1}"><part>{0}</part><part at="{2}">text</part></item>'
    for name, count in (("papers.xml", 30000), ("papers_small.xml", 1500)):
        items = [item.format(i, i * 7919 % 1009, i % 7) for i in range(count)]
        (folder / name).write_text("<items>\n" + "\n".join(items) + "\n</items>\n")
    (folder / "papers.json").write_text(json.dumps([{"id": i, "tags": [str(i * k % 997) for k in range(5)]} for i in range(2000)]))
    (folder / "papers.pl").write_text(_PERL)
    (folder / "papers.py").write_text(_PYTHON)
    (folder / "papers.rb").write_text(_RUBY)
    (folder / "papers.sql").write_text(_SQL)
    (folder / "papers.bc").write_text("x = 1\nfor (i = 1; i < 400; i++) x = x * i\nlength(x)\nquit\n")


def none(folder: Path) -> None:
    """A program that makes its own input."""


MAKERS: dict[str, Callable[[Path], None]] = {
    "cpp": cpp,
    "c": c,
    "words": words,
    "python": python,
    "lua": lua,
    "sql": sql,
    "smt": smt,
    "postscript": postscript,
    "node": node,
    "papers": papers,
    "none": none,
}
