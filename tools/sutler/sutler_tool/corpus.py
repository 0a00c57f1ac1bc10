# SPDX-License-Identifier: MIT
"""`sutler corpus`: who catches which memory bug.

The program (tests/hardened/corpus) commits one bug a run.  What comes of it is read from how the run ends and from the
order of the lines on standard error, where the program marks the bug's begin and end and an allocator writes its
reports:

  caught at once   a report, or death, between the two marks: no allocator's word is needed for a page that is not there
  caught later     a report, or an abort, after the bug, by the end of the program
  crashed          SIGSEGV or SIGBUS after the bug, without a word: nobody noticed, but the program did not go on either
  harmless         no report; the bug had no effect on anybody's data
  missed           no report; the bug had its effect

`correct` is a class without bugs: whatever is not harmless there is a false alarm.  What has to come of each case under
Sutler's two libraries is in expectations.csv beside the program; the tests compare (expect_outcomes.py, which runs without
the tool's environment, so that only the standard library is imported here).
"""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Mapping, Optional, Sequence

from . import paths
from .libraries import GLIBC, Library, sutler

if TYPE_CHECKING:
    from rich.console import Console

OUTCOMES = ("caught at once", "caught later", "crashed", "harmless", "missed")
MARK = "corpus: "
EFFECT = 3
SECONDS = 600


class CorpusError(Exception):
    """A run that says nothing about its allocator."""


def classify(status: int, errors: str) -> str:
    """The outcome of a run from its exit status (negative: the signal) and its standard error."""
    stage, reported = "before", set()
    for line in errors.splitlines():
        if line.startswith(MARK + "broken"):
            raise CorpusError(line)
        if line.startswith(MARK):
            stage = line[len(MARK) :]
        elif line.strip():
            reported.add(stage)
    if status in (-signal.SIGALRM, -signal.SIGKILL):
        raise CorpusError("it hangs")
    if "before" in reported or (stage == "before" and status < 0):
        raise CorpusError(f"it failed before the bug (status {status}): {errors[:300]}")
    if "bug" in reported or (status < 0 and stage == "bug"):
        return "caught at once"
    if reported:
        return "caught later"
    if status in (-signal.SIGSEGV, -signal.SIGBUS):
        return "crashed"
    if status < 0:
        return "caught later"
    if status not in (0, EFFECT):
        raise CorpusError(f"it ended with status {status}")
    return "missed" if status == EFFECT else "harmless"


def run(program: Path, case: str, settings: Mapping[str, str]) -> str:
    """Commits one bug under one allocator."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment.update(settings)
    try:
        done = subprocess.run(
            [str(program), case],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise CorpusError(f"{case}: it hangs") from error
    try:
        return classify(done.returncode, done.stderr.decode(errors="replace"))
    except CorpusError as error:
        raise CorpusError(f"{case}: {error}") from error


def table() -> list[dict[str, str]]:
    """The rows of expectations.csv: what is to come of each case."""
    with (paths.require_tree() / "tests/hardened/corpus/expectations.csv").open() as file:
        return list(csv.DictReader(file))


def guards_work() -> bool:
    """Whether the kernel can guard pages (MADV_GUARD_INSTALL)."""
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) >= (6, 13)


# What is set for a column of the table beside the library.
SETTINGS = {"plain": {}, "hardened": {}, "sweep": {"SUTLER_SWEEP": "on"}}


def expectations(column: str) -> dict[str, str]:
    """The outcome of each case under `plain`, `hardened` or `sweep` on this machine."""
    if column == "hardened" and not guards_work():
        return {row["case"]: row["without guards"] or row["hardened"] for row in table()}
    return {row["case"]: row[column] for row in table()}


def cases_of(program: Path) -> list[str]:
    """All cases, as CLASS.CASE."""
    return subprocess.run([str(program), "--list"], capture_output=True, text=True, check=True).stdout.split()


def outcomes(program: Path, settings: Mapping[str, str], cases: Sequence[str]) -> dict[str, str]:
    """What comes of these cases under the allocator that `settings` preload; a run that failed says why instead."""

    def outcome(case: str) -> str:
        try:
            return run(program, case, settings)
        except CorpusError as error:
            return f"no outcome: {error}"

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return dict(zip(cases, pool.map(outcome, cases)))


# The verb

TITLE = "who catches what"
COLUMNS = {"sutler": "plain", "sutler-hardened": "hardened", "sutler-hardened, sweep": "sweep"}
HARDENED_PEERS = ("hardened_malloc", "scudo", "snmalloc-checks", "mimalloc-secure")
CLASSES = {
    "overflow": "overflow",
    "underflow": "underflow",
    "overread": "overread",
    "write_after_free": "write after free",
    "read_after_free": "read after free",
    "double_free": "double free",
    "invalid_free": "invalid free",
    "mismatch": "wrong size, alignment or family at the free",
    "leak": "old data in a new block",
    "links": "attacks on free lists",
    "spray": "placement foretold",
    "correct": "no bug at all",
}


def counted(seen: Mapping[str, str], name: str) -> Counter[str]:
    """How many cases of a class had which outcome."""
    return Counter(outcome for case, outcome in seen.items() if case.split(".")[0] == name)


def cell(counts: Counter[str]) -> str:
    """Four numbers: at once, later, harmless, missed or crashed; those that are zero as dots."""
    numbers = [counts["caught at once"], counts["caught later"], counts["harmless"], counts["missed"] + counts["crashed"]]
    return " / ".join(str(number) if number else "·" for number in numbers)


def rows(seen: Mapping[str, Mapping[str, str]]) -> list[list[str]]:
    """The table: a row a class, a column an allocator, and the sum of all bugs."""
    table = [[words, *(cell(counted(outcomes, name)) for outcomes in seen.values())] for name, words in CLASSES.items()]
    bugs = [name for name in CLASSES if name != "correct"]
    sums = [cell(sum((counted(outcomes, name) for name in bugs), Counter())) for outcomes in seen.values()]
    return [*table[:-1], ["**all bugs**", *sums], table[-1]]


def markdown(seen: Mapping[str, Mapping[str, str]], provenance: str) -> str:
    """The table for the page."""
    lines = [provenance, "", "| bugs | " + " | ".join(seen) + " |", "|---|" + "---:|" * len(seen)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows(seen))]) + "\n"


def built(name: str, target: str) -> Path:
    """A file of the release build, made anew."""
    home = paths.require_tree()
    paths.build_preset("release", ("-DSUTLER_TESTS=ON",), (target,))
    return home / "build" / "release" / name


def corpus(
    console: "Console", peers: Sequence[str], page: Optional[Path], each: bool, library: Optional[str]
) -> int:
    """Commits every bug under every allocator and says who caught it; 1 if Sutler's outcomes are not those expected."""
    from rich.table import Table

    from .machine import describe
    from .peers import named, obtain
    from .publish import write_table

    say: Callable[[str], None] = lambda text: console.print(f"sutler: {text}", markup=False, highlight=False)  # noqa: E731
    program = built("tests/hardened/corpus/corpus", "corpus")
    chosen = [Library("sutler", sutler(paths.library(library)).preload)]
    hardened = (str(built("libsutler-hardened.so", "sutler_hardened")),)
    chosen += [Library("sutler-hardened", hardened), Library("sutler-hardened, sweep", hardened, SETTINGS["sweep"])]
    chosen += [GLIBC, *obtain(list(peers), say)]
    cases = cases_of(program)
    seen = {}
    for one in chosen:
        say(f"{len(cases)} cases under {one.name}")
        seen[one.name] = outcomes(program, one.environment(), cases)
    for name, found in seen.items():
        for case, outcome in found.items():
            if outcome not in OUTCOMES:
                say(f"{name}: {outcome}")
    shown = Table(title="Caught at once / later / harmless / missed", title_justify="left", pad_edge=False)
    for heading in ("bugs", *seen):
        shown.add_column(heading, overflow="fold")
    for row in [[case, *(found[case] for found in seen.values())] for case in cases] if each else rows(seen):
        shown.add_row(*row)
    console.print(shown)
    if page:
        about = describe(paths.require_tree())
        line = f"{about['date']}, commit {about['source']}; kernel {about['kernel']}, glibc {about['libc'].split()[-1]}; "
        line += ", ".join(f"{peer.name}: {peer.source} {peer.row.get('version', '')}".strip() for peer in named(peers))
        write_table(page, TITLE, markdown(seen, f"{line}.\n`./sutler corpus --markdown {page}`; {len(cases)} cases."))
    wrong = 0
    for name, column in COLUMNS.items():
        for case, outcome in expectations(column).items():
            if seen[name][case] != outcome:
                say(f"{name}: {case}: {outcome} was expected, not {seen[name][case]}")
                wrong += 1
    return 1 if wrong else 0
