# SPDX-License-Identifier: MIT
"""`sutler report DIR --against DIR2`: do two runs of the same suites say the same?

Row by row: each program's median under each allocator, and its ratio to the base, once from each run, with the intervals
the tables state.  Two intervals agree when they overlap.  They promise 95 %, so one row in twenty may be apart by chance;
more is a finding about the machine or about the intervals, and the verdict says which figures cannot be trusted.

The two kinds are counted apart because they err differently: what happens to the whole machine between the runs moves
every absolute time and hardly a ratio, both halves of which are measured in the same rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from .paths import ToolError
from .publish import layouts
from .results import Results
from .stats import Interval
from .tables import number

FILE = "agreement.md"
CHANCE = 0.05  # what a 95 % interval leaves to chance
KINDS = ("ratio", "median")


@dataclass(frozen=True)
class Row:
    """One figure as two runs state it."""

    kind: str
    program: str
    what: str
    one: Interval
    other: Interval

    @property
    def agrees(self) -> bool:
        return self.one.agrees(self.other)

    @property
    def apart(self) -> float:
        return self.one.apart(self.other)

    def cells(self) -> list[str]:
        def shown(figure: Interval) -> str:
            return f"{number(figure.value)} ({number(figure.low)}-{number(figure.high)})"

        word = "agree" if self.agrees else "APART"
        return [self.kind, self.program, self.what, shown(self.one), shown(self.other), f"{self.apart:+.1%}", word]


HEADS = ["", "program", "figure", "first run", "second run", "moved by", ""]


def rows(one: Results, other: Results) -> Iterator[Row]:
    """Every figure that both runs state."""
    twins = {(program.suite, program.name): program for program in other.programs}
    for _, _, layout in layouts(one):
        for program in layout.programs:
            twin = twins.get((program.suite, program.name))
            if twin is None:
                continue
            for name in layout.among:
                mine, theirs = program.middle(name, program.figure), twin.middle(name, program.figure)
                if mine and theirs:
                    yield Row("median", f"{program.suite}: {program.name}", name, mine, theirs)
            for name, of in layout.pairs():
                mine, theirs = (each.ratio(name, of, program.figure) for each in (program, twin))
                if math.isfinite(mine.value) and math.isfinite(theirs.value):
                    yield Row("ratio", f"{program.suite}: {program.name}", f"{name} / {of}", mine, theirs)


def summary(found: Sequence[Row], kind: str) -> tuple[bool, str]:
    """Whether the rows of one kind agree as often as their intervals promise, and the sentence that says so."""
    mine = [row for row in found if row.kind == kind]
    if not mine:
        return True, f"no {kind}s in common"
    apart = [row for row in mine if not row.agrees]
    good = len(apart) <= CHANCE * len(mine)
    moved = median(abs(row.apart) for row in mine if math.isfinite(row.apart)) if mine else math.nan
    text = f"{len(mine) - len(apart)} of {len(mine)} {kind}s agree within their intervals ({1 - len(apart) / len(mine):.0%}); "
    text += f"half of them moved by less than {moved:.1%}"
    return good, text


def agreement(console: Console, one: Results, other: Results) -> int:
    """Prints and writes the comparison; returns 0 when both kinds agree in 95 % of their rows."""
    found = list(rows(one, other))
    if not found:
        raise ToolError(f"{one.folder} and {other.folder} have no program and allocator in common: nothing can be compared")
    for key in ("cpu", "processors", "kernel", "source"):
        here, there = (results.about.get("machine", {}).get(key) for results in (one, other))
        if here != there:
            console.print(f"sutler: the two runs differ in {key}: {here}, {there}", markup=False, soft_wrap=True)
    lines = ["# Do the two runs agree?", "", "| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in found]
    apart = [row for row in found if not row.agrees]
    if apart:
        table = Table(title="Figures whose intervals do not overlap", title_justify="left", pad_edge=False)
        for head in HEADS[:-1]:
            table.add_column(head, overflow="fold")
        for row in apart:
            table.add_row(*row.cells()[:-1])
        console.print(table)
    verdicts = {kind: summary(found, kind) for kind in KINDS}
    for _, text in verdicts.values():
        console.print(text, style="bold", markup=False, highlight=False, soft_wrap=True)
    good = all(agree for agree, _ in verdicts.values())
    if good:
        verdict = "The two runs agree: no more rows are apart than 95 % intervals leave to chance."
    elif verdicts["ratio"][0]:
        verdict = (
            "The ratios agree, the absolute figures do not: the machine itself changed between the runs. "
            "Compare ratios, not times, across runs."
        )
    else:
        verdict = (
            "The two runs do not agree: too many ratios are apart. Something else used the machine, or its state differs; "
            "run both again when it is quiet, with more rounds (-n)."
        )
    console.print(verdict, style="bold", markup=False, highlight=False, soft_wrap=True)
    (one.folder / FILE).write_text("\n".join([*lines, "", *(text for _, text in verdicts.values()), "", verdict]) + "\n")
    console.print(f"sutler: row by row: {one.folder / FILE}", markup=False, highlight=False, soft_wrap=True)
    return 0 if good else 1
