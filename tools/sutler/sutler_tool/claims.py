# SPDX-License-Identifier: MIT
"""What a paper says, decided by the runs: `report` writes the table of claims between the lines

    <!-- table SUITE, claims -->
    <!-- end -->

A suite's [[claim]] has `paper` (where it is said), `says`, `rows` (a group of the suite) and `holds`, a list of conditions:

    of, to          libraries: the figure is of's over to's (without `to`: of's own)
    figure          a printed key instead of the programs' own figure; to_figure: another one for `to`
    row, to_row     one program of the group instead of all (of several: the geometric mean)
    every           true: each row has to hold by itself, not their mean
    above, below    the bound; between = [low, high]: both

The rule: a condition is met where the 95 % interval lies wholly on the claimed side of the bound, refuted where it lies
wholly on the other (or outside of both), else open.  Fewer than three rounds decide nothing, unless the figure is counted
instead of timed.  Where every row has to hold, the worst row is shown, and one refuted row refutes.  A claim is reproduced when all of its conditions are met, not reproduced when all are refuted or the only decided ones are.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, Sequence

from .results import Program, Results
from .stats import Interval, geometric_mean_interval, ratio_of_medians
from .tables import NO_FIGURE, number

MET, REFUTED, OPEN, UNKNOWN = "met", "refuted", "open", "unknown"
ROUNDS_THAT_DECIDE = 3
BOUNDS = ("above", "below", "between")
KEYS = {"of", "to", "figure", "to_figure", "row", "to_row", "every", *BOUNDS}
HEADER = ["the paper says", "where", "rows", "holds if", "measured", "today"]


def mistake(claim: Mapping[str, Any], groups: Mapping[str, Any], programs: Mapping[str, str], libraries: set[str]) -> str:
    """What is wrong with a claim's row in a suite; an empty string if nothing.  `programs`: their groups by their names."""
    if set(claim) != {"paper", "says", "rows", "holds"} or not claim["holds"]:
        return "a claim needs paper, says, rows and holds"
    if claim["rows"] not in groups:
        return f"there is no group '{claim['rows']}'"
    for condition in claim["holds"]:
        if set(condition) - KEYS or "of" not in condition or sum(bound in condition for bound in BOUNDS) != 1:
            return f"a condition needs `of` and one of {', '.join(BOUNDS)}, and knows {', '.join(sorted(KEYS))}"
        strange = [condition[key] for key in ("of", "to") if condition.get(key, "glibc") not in libraries]
        strange += [condition[key] for key in ("row", "to_row") if key in condition and programs.get(condition[key]) != claim["rows"]]
        if strange:
            return f"nothing in '{claim['rows']}' is called {', '.join(strange)}"
    return ""


def _by_round(program: Program, library: str, figure: str) -> dict[int, float]:
    values = {run.round: program.value(run, figure) for run in program.runs if run.library == library and run.ok}
    return {turn: value for turn, value in values.items() if value is not None and value >= 0}


def interval(programs: Sequence[Program], condition: Mapping[str, Any]) -> Interval:
    """The figure that a condition is about."""
    named = {program.name: program for program in programs}
    rows = []
    for program in programs:
        if condition.get("row", program.name) != program.name:
            continue
        other = named.get(condition.get("to_row", program.name), program)
        figure = condition.get("figure", program.figure)
        ours = _by_round(program, condition["of"], figure)
        base = dict.fromkeys(ours, 1.0)
        if "to" in condition:
            base = _by_round(other, condition["to"], condition.get("to_figure", condition.get("figure", other.figure)))
        shared = [turn for turn in sorted(ours) if base.get(turn)]
        if shared:
            rows.append(([ours[turn] for turn in shared], [base[turn] for turn in shared]))
    if len(rows) == 1:
        return ratio_of_medians(*rows[0])  # which may be nothing: no lock was found held
    rows = [row for row in rows if all(value > 0 for value in row[0])]
    return geometric_mean_interval(rows) if rows else NO_FIGURE


def limits(condition: Mapping[str, Any]) -> tuple[float, float]:
    least, most = condition.get("between", (condition.get("above", -math.inf), condition.get("below", math.inf)))
    return float(least), float(most)


def decide(measured: Interval, condition: Mapping[str, Any], counted: bool = False) -> str:
    """MET, REFUTED, OPEN, or UNKNOWN where nothing was measured."""
    if not math.isfinite(measured.value):
        return UNKNOWN
    if measured.rounds < ROUNDS_THAT_DECIDE and not counted:
        return OPEN
    least, most = limits(condition)
    if measured.low > least and measured.high < most:
        return MET
    return REFUTED if measured.high <= least or measured.low >= most else OPEN


def judge(programs: Sequence[Program], condition: Mapping[str, Any], counted: bool = False) -> tuple[Interval, str]:
    """A condition's figure and what is decided by it; where every row has to hold, those of the row that says the least."""
    if not condition.get("every"):
        measured = interval(programs, condition)
        return measured, decide(measured, condition, counted)
    rows = [interval([program], condition) for program in programs]
    decided = [decide(row, condition, counted) for row in rows]
    worst = next(what for what in (REFUTED, UNKNOWN, OPEN, MET) if what in decided)
    least, _ = limits(condition)
    if worst == UNKNOWN:
        return NO_FIGURE, UNKNOWN
    ends = [(row.low if math.isfinite(least) else -row.high, row) for row, what in zip(rows, decided) if what == worst]
    return min(ends, key=lambda end: end[0])[1], worst


def verdict(decided: Sequence[str]) -> str:
    """In the words of the table."""
    met, refuted = decided.count(MET), decided.count(REFUTED)
    if UNKNOWN in decided:
        return "not measured"
    if met == len(decided):
        return "reproduced"
    if refuted and not met:
        return "not reproduced"
    return f"in part: {met} of {len(decided)}, {refuted} refuted" if refuted else "not to be told"


def words(condition: Mapping[str, Any]) -> str:
    """A condition as the table shows it: `LFB / LB (free_instructions) < 0.38`."""
    side = lambda name, row, figure: name + (f", {row}" if row else "") + (f" ({figure})" if figure else "")  # noqa: E731
    figure, to_figure = condition.get("figure", ""), condition.get("to_figure", "")
    row = "every row" if condition.get("every") else condition.get("row", "")
    left = side(condition["of"], row, figure if to_figure or "to" not in condition else "")
    if "to" in condition:
        left += " / " + side(condition["to"], condition.get("to_row", ""), to_figure)
        left += f" ({figure})" if figure and not to_figure else ""
    least, most = limits(condition)
    if "between" in condition:
        return f"{left} in {least:g} to {most:g}"
    return left + (f" > {least:g}" if "above" in condition else f" < {most:g}")


def shown(measured: Interval) -> str:
    """`0.93 (0.91 to 0.95)`, to three digits."""
    if not math.isfinite(measured.value):
        return "-"
    spread = f" ({number(measured.low)} to {number(measured.high)})" if measured.rounds >= ROUNDS_THAT_DECIDE else ""
    return number(measured.value) + spread


def table(found: Results, suite: str) -> tuple[str, list[str], list[list[str]]]:
    """Title, header and a row for each claim of the suite; no rows where it makes none or none of their groups ran."""
    made = []
    for claim in found.about["suites"][suite].get("claims", ()):
        programs = [program for program in found.suite(suite) if program.group == claim["rows"]]
        if not programs:
            continue
        counted = all(program.counted for program in programs)
        judged = [judge(programs, condition, counted) for condition in claim["holds"]]
        decided = [what for _, what in judged]
        conditions = [words(condition) for condition in claim["holds"]]
        figures = [f"{shown(value)} {what}" for value, what in judged]
        row = [claim["says"], claim["paper"], claim["rows"], "; ".join(conditions), "; ".join(figures), verdict(decided)]
        made.append(row)
    return "The papers' claims, decided by the rows named", HEADER, made
