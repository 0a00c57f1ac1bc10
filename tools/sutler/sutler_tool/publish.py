# SPDX-License-Identifier: MIT
"""`sutler report DIR --markdown FILE`: the tables of a run, written into a page that people write the rest of.

A table that is copied by hand is soon of another day than the sentence above it.  So a page only marks the place,

    <!-- table NAME -->
    <!-- end -->

and what stands between the two lines is made from the run: NAME is a group of the suite, or the suite itself where it has
no groups; `NAME, memory`, `NAME, mean memory`, `NAME, cpu` and `NAME, faults` are further tables of the same programs, and
`NAME, scaling` shows each sweep's rows over its first.  `SUITE, claims` is the table of claims.py.
Each table says when, where, of which commit and with which command it was made, and a figure that is worse stands in bold,
whether or not its interval could show it: a reader should find the losses first.

A mark that this run has no table for is left as it is, a table of the run without a mark is told: neither is an error,
because a page may collect several suites.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from . import claims
from .libraries import SAME
from .paths import ToolError
from .results import Program, Results
from .stats import Interval, geometric_mean, ratio_of_medians
from .tables import cell, number, ratio_text, unit

BASE, OURS = "glibc", "sutler"
MARK = re.compile(r"^<!-- table (?P<name>.+?) -->\n(?P<body>.*?)^<!-- end -->$", re.M | re.S)
START = re.compile(r"^<!-- table (?P<name>.+?) -->$", re.M)
RATIO_COLUMNS = 5  # with more allocators than that only the base and the best of the others get one

ASPECTS: Mapping[str, tuple[str, str, float]] = {
    "memory": ("peak", "peak resident memory, MiB", 1 / (1 << 20)),
    "mean memory": ("mean", "resident memory averaged over the run, MiB", 1 / (1 << 20)),
    "cpu": ("cpu", "processor seconds of all threads", 1.0),
    "faults": ("faults", "page faults of the program's own threads", 1.0),
}


@dataclass(frozen=True)
class Layout:
    """What a table compares: either `subject` with each of the others, or each of the others with its base."""

    programs: Sequence[Program]
    among: Sequence[str]
    subject: str = ""
    base: str = BASE
    bases: Mapping[str, str] = None  # type: ignore[assignment]
    twins: Sequence[str] = ()  # the subject with other settings, or in other builds: no rivals of its own
    mean: bool = True
    ratios_only: bool = False  # of the others' medians only the base's is shown

    def shown(self) -> list[str]:
        """Whose medians have a column."""
        return [name for name in self.among if name == self.base or not self.ratios_only]

    def pairs(self) -> list[tuple[str, str]]:
        """(numerator, denominator) of each ratio column."""
        if not self.subject:
            return [(name, (self.bases or {}).get(name, self.base)) for name in self.among if name != self.base]
        others = [name for name in self.among if name != self.subject]
        if len(others) > RATIO_COLUMNS:
            others = [name for name in others if name == self.base]
        return [(self.subject, name) for name in others]

    def rivals(self) -> list[str]:
        """Whom the column of the best counts: worth one only where there are at least two."""
        if not self.subject:
            return []
        names = [name for name in self.among if name != self.subject and name not in self.twins]
        return names if len(names) > 1 else []


def shown_command(text: str) -> str:
    """The command as another person would type it: without where this one kept results and libraries."""
    words, kept, skip = shlex.split(text), [], False
    for word in words:
        if skip or word in ("--out", "--library"):
            skip = not skip
        elif not word.startswith(("--out=", "--library=")):
            kept.append(word)
    return shlex.join(kept)


def provenance(found: Results, suite: str, programs: Sequence[Program]) -> str:
    """When, where, what, how often, and how quiet it was: the line above a table."""
    machine, about = found.about.get("machine", {}), found.about["suites"].get(suite, {})
    place = [
        f"{machine.get('processors', '?')} processors of {machine.get('cpu', '?')}",
        *(["virtual machine"] if machine.get("virtual machine") == "yes" else []),
        machine.get("memory", ""),
        f"Linux {machine.get('kernel', '?').split('-')[0]}",
        machine.get("libc", ""),
        f"huge pages {machine.get('transparent huge pages', '?')}",
    ]
    rounds = max((run.round + 1 for program in programs for run in program.runs), default=0)
    asked = about.get("rounds", rounds)
    counted = sum(len(program.runs) for program in programs)
    repeated = sum(program.attempts for program in programs) - counted
    disturbed = sum(run.disturbed for program in programs for run in program.runs)
    lines = [
        f"{machine.get('date', '?')}, commit {machine.get('source') or 'unknown'}; {', '.join(word for word in place if word)}.",
        f"`{shown_command(found.about.get('command', ''))}`; {rounds} round{'' if rounds == 1 else 's'}"
        + (f" of {asked} wanted" if rounds < asked else "")
        + (", stopped by the user" if found.about.get("interrupted") else "")
        + f"; {counted} {'run counts' if counted == 1 else 'runs count'}, {repeated} were repeated, {disturbed} disturbed all the same. {noise(programs)}",
    ]
    return "\n".join(lines)


def noise(programs: Sequence[Program]) -> str:
    """What glibc against itself shows, where that was measured."""
    ratios = [ratio.value for program in programs if math.isfinite((ratio := program.ratio(SAME.name, BASE, program.figure)).value)]
    if not ratios:
        return "Noise floor (--aa) not measured."
    return (
        f"Noise floor, glibc against itself: {min(ratios):.2f} to {max(ratios):.2f}, "
        f"geometric mean {geometric_mean(ratios):.2f}."
    )


def _better(program: Program, figure: str) -> str:
    return program.better if figure == program.figure else "lower"


def judged(ratio: Interval, better: str) -> str:
    """A ratio with its interval, in bold where it is worse than 1.00 as printed."""
    text = ratio_text(ratio)
    if not math.isfinite(ratio.value):
        return text
    shown = round(ratio.value, 2)
    return f"**{text}**" if (shown > 1 if better == "lower" else shown < 1) else text


def _best_ratio(program: Program, layout: Layout, figure: str) -> tuple[float, str]:
    """The subject's median over that of the best of the others, and who that was."""
    mine = program.middle(layout.subject, figure)
    theirs = {name: middle.value for name in layout.rivals() if (middle := program.middle(name, figure)) and middle.value}
    if mine is None or not theirs:
        return math.nan, ""
    pick = min if _better(program, figure) == "lower" else max
    best = pick(theirs, key=lambda name: theirs[name])
    return mine.value / theirs[best], best


def table(found: Results, layout: Layout, figure: Optional[str] = None, scale: float = 1.0) -> str:
    """Medians of all, ratios, and their geometric mean, as Markdown."""
    pairs, rivals = layout.pairs(), layout.rivals()
    shown = layout.shown()
    rows = [["", *shown, *(f"{one} / {of}" for one, of in pairs), *(["/ best other"] if rivals else [])]]
    bests: list[float] = []
    for program in layout.programs:
        which = figure or program.figure
        better = _better(program, which)
        note = "" if figure else f" [{unit(which)}{'' if better == 'lower' else ', higher is better'}]"
        row = [program.name + note, *(cell(program, name, which, scale) for name in shown)]
        row += [judged(program.ratio(one, of, which), better) for one, of in pairs]
        if rivals:
            ratio, best = _best_ratio(program, layout, which)
            if math.isfinite(ratio) and ratio > 0 and better == "lower":
                bests.append(ratio)
            row.append(judged(Interval(ratio, ratio, ratio, 1), better) + (f" {best}" if best else ""))
        rows.append(row)
        for key in () if figure else program.also:
            rows.append([f"– {key}", *(cell(program, name, key) for name in shown)])
    if len(layout.programs) > 1 and layout.mean:
        means = [judged(found.mean(layout.programs, one, of, figure), "lower") for one, of in pairs]
        if any(mean != "-" for mean in means):
            last = [judged(Interval(geometric_mean(bests), 0, 0, 1), "lower")] if rivals else []
            rows.append(["geometric mean", *[""] * len(shown), *means, *last])
    width = len(rows[0])
    return lines_of(rows[0], [[*row, *[""] * (width - len(row))] for row in rows[1:]])


def lines_of(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; the first `left` columns are words."""
    rule = "|" + "|".join(["---"] * left + ["---:"] * (len(header) - left)) + "|"
    shown = ["| " + " | ".join(word.replace("|", "\\|") for word in row) + " |" for row in (header, *rows)]
    return "\n".join([shown[0], rule, *shown[1:]])


def scaling_table(layout: Layout) -> str:
    """How many times as fast each row of a sweep is as the sweep's first; an empty string without sweeps."""
    firsts: dict[str, Program] = {}
    rows = []
    for program in layout.programs:
        if program.sweep is None:
            continue
        first = firsts.setdefault(program.sweep[0], program)
        if first is program:
            continue
        cells = []
        for name in layout.among:
            now, then = (
                {run.round: p.value(run, p.figure) for run in p.runs if run.library == name and run.ok} for p in (program, first)
            )
            turns = sorted(turn for turn in now if now[turn] and then.get(turn))
            pair = [now[turn] for turn in turns], [then[turn] for turn in turns]
            faster = pair if program.better == "higher" else pair[::-1]
            cells.append(ratio_text(ratio_of_medians(*faster)) if turns else "-")  # type: ignore[arg-type]
        rows.append([f"{program.name}, over {first.sweep[2]:g}", *cells])  # type: ignore[index]
    return lines_of(["times as fast", *layout.among], rows) if rows else ""


def claims_table(found: Results, suite: str) -> str:
    """Line above and table of claims.py; an empty string where the suite claims nothing."""
    _, header, rows = claims.table(found, suite)
    return f"{provenance(found, suite, found.suite(suite))}\n\n{lines_of(header, rows, len(header))}\n" if rows else ""


def layouts(found: Results) -> Iterator[tuple[str, str, Layout]]:
    """(table's name, suite, layout) of every table this run can fill."""
    for suite in dict.fromkeys(program.suite for program in found.programs):
        about, programs = found.about["suites"][suite], found.suite(suite)
        groups: Mapping[str, Mapping[str, Any]] = about.get("groups") or {suite: {"subject": OURS}}
        for name, row in groups.items():
            members = [program for program in programs if program.group == name] if about.get("groups") else programs
            if members:
                yield name, suite, layout_of(found, members, row)


def layout_of(found: Results, members: Sequence[Program], row: Mapping[str, Any]) -> Layout:
    """What a group's own row of the suite says should be compared."""
    ran = {run.library for program in members for run in program.runs} - {SAME.name}
    among = [name for name in row.get("under", found.libraries) if name in ran]
    subject = row.get("subject", "")
    preload = {name: tuple(more.get("preload", ())) for name, more in found.about.get("libraries", {}).items()}
    same = [name for name in among if preload.get(name) and preload.get(name) == preload.get(subject)]
    twins = [name for name in (*same, *row.get("twins", ())) if name != subject]
    return Layout(
        members,
        among,
        subject if subject in among else "",
        row.get("base", BASE),
        row.get("bases", {}),
        twins,
        bool(row.get("mean", True)),
        bool(row.get("ratios_only", False)),
    )


def tables(found: Results) -> dict[str, str]:
    """What to write between the marks, by the marks' names."""
    made: dict[str, str] = {}
    for name, suite, layout in layouts(found):
        above = provenance(found, suite, layout.programs)
        made[name] = f"{above}\n\n{table(found, layout)}\n"
        for aspect, (figure, words, scale) in ASPECTS.items():
            made[f"{name}, {aspect}"] = f"{above} {words[0].upper()}{words[1:]}.\n\n{table(found, layout, figure, scale)}\n"
        scaling = scaling_table(layout)
        if scaling:
            made[f"{name}, scaling"] = f"{above}\n\n{scaling}\n"
    for suite in dict.fromkeys(program.suite for program in found.programs):
        decided = claims_table(found, suite)
        if decided:
            made[f"{suite}, claims"] = decided
    return made


def publish(found: Results, page: Path, say: Callable[[str], None]) -> int:
    """Fills the marks of one page; returns how many of the run's tables it had no mark for."""
    try:
        text = page.read_text()
    except OSError as error:
        raise ToolError(f"{page} cannot be read: {error.strerror}. It has to exist, with marks in it (see --help)") from error
    whole = [match.group("name") for match in MARK.finditer(text)]
    begun = [match.group("name") for match in START.finditer(text)]
    open_ended = [name for name in begun if name not in whole]
    if open_ended or len(begun) != len(whole):
        name = (open_ended or begun)[0]
        raise ToolError(f"{page}: the mark '<!-- table {name} -->' has no '<!-- end -->' on a line of its own before the next")
    made = tables(found)
    page.write_text(
        MARK.sub(
            lambda match: f"<!-- table {match['name']} -->\n\n{made[match['name']]}\n<!-- end -->"
            if match["name"] in made
            else match.group(0),
            text,
        )
    )
    filled = [name for name in dict.fromkeys(whole) if name in made]
    missing = [name for name, _, _ in layouts(found) if name not in whole]
    say(f"{page}: {len(filled)} tables written" + (f" ({'; '.join(filled)})" if filled else ""))
    if missing:
        say(f"{page} has no place for {'; '.join(missing)}: the lines '<!-- table {missing[0]} -->' and '<!-- end -->' make one")
    return len(missing)


def write_table(page: Path, name: str, text: str) -> None:
    """Fills one mark of a page with a table made elsewhere."""
    before = page.read_text()
    filled = MARK.sub(
        lambda match: f"<!-- table {name} -->\n\n{text}\n<!-- end -->" if match["name"] == name else match.group(0), before
    )
    if not any(match["name"] == name for match in MARK.finditer(before)):
        raise ToolError(f"{page} has no place for it: put the lines '<!-- table {name} -->' and '<!-- end -->' where it belongs")
    page.write_text(filled)
