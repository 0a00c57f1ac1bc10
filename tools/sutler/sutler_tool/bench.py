# SPDX-License-Identifier: MIT
"""`sutler bench`: suites as data, every run a row.

Rounds are the outermost loop: each round runs every program under every allocator once, so that an hour of drift is
spread over all of them and a run that is cut short (ctrl-C) still has whole rounds.  A row is written and flushed the
moment its run has ended; a crash is a row that says so.

How long it will take is said before it starts, from what the suite knows of its programs, and again after each round.  A
suite may have a limit in minutes: no round is begun that would pass it, so that a slow or busy machine gets fewer whole
rounds and wider intervals, not an evening of waiting.
"""

from __future__ import annotations

import csv
import json
import shlex
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

from rich.console import Console

from . import libraries, packages, paths, peers, suites
from .libraries import GLIBC, SAME, Library
from .machine import describe
from .measure import CSV_COLUMNS, Limits, Run, csv_row, default_memory_limit
from .paths import ToolError
from .progress import progress_bar
from .rounds import Interleaver
from .stats import LEAST_ROUNDS
from .suites import Entry, Suite, estimated_seconds
from .tables import duration

RUNS_FILE, ABOUT_FILE = "runs.csv", "about.json"
PEERS = ("mimalloc", "jemalloc", "gperftools")  # where neither the user nor the suite says whom to run


def default_folder() -> Path:
    return paths.require_tree() / "build" / "bench-results" / datetime.now().strftime("%Y%m%d-%H%M%S")


def _list(console: Console) -> int:
    for name in suites.names():
        suite = suites.load(name)
        console.print(f"{name}: {suite.title} ({len(suite.entries)} programs, {suite.rounds} rounds)", style="bold")
        console.print(f"  {suite.about}", markup=False)
        console.print("  " + "; ".join(entry.name for entry in suite.entries), markup=False, style="dim")
    return 0


def contenders(
    suite: Suite, wanted: Sequence[str], library: Optional[str], same: bool, say: Callable[[str], None]
) -> list[Library]:
    """glibc, Sutler, what the suite adds, and the peers that could be had."""
    ours = libraries.sutler(paths.library(library))
    chosen = [GLIBC, ours]
    assembled = []
    for row in suite.engines:
        try:
            assembled.append(suites.assembled(row))
        except ToolError as error:
            say(f"{row['name']} is left out: {error}")
    for further in (*suite.libraries, *assembled):
        missing = [item for item in further.preload if not Path(item).exists()]
        if missing:
            say(f"{further.name} is left out: {missing[0]} does not exist")
        else:
            chosen.append(further)
    chosen += peers.obtain([name for name in wanted if name not in ("glibc", "sutler")], say)
    for candidate in list(chosen[1:]):
        why = libraries.works(candidate)
        if why and candidate is ours:
            raise ToolError(f"the library does not work here: {why}")
        if why:
            say(f"{candidate.name} is left out: {why}")
            chosen.remove(candidate)
    return chosen + ([SAME] if same else [])


def _names(entry: Entry) -> set[str]:
    """What chooses the program by itself: its name, or its group's without the commas that separate names."""
    return {entry.name, entry.group.replace(",", "")}


def usable(suite: Suite, only: Sequence[str], say) -> list[Entry]:  # type: ignore[no-untyped-def]
    """The programs of the suite that are wanted and are on this machine.

    A word of `only` that is nobody's name chooses the programs whose names it is a part of.
    """
    words = set(only)
    parts = words.difference(*map(_names, suite.entries))
    named = lambda entry: words & _names(entry) or any(part in entry.name for part in parts)  # noqa: E731
    wanted = [entry for entry in suite.entries if not only or named(entry)]
    if only and not wanted:
        say(f"suite {suite.name} has no program called {', '.join(only)}")
    chosen = []
    for entry in wanted:
        missing = entry.missing()
        if missing:
            say(f"{suite.name}: {entry.name} is left out, {Path(missing).name} is not here")
        else:
            chosen.append(entry)
    return chosen


@dataclass
class Budget:
    """How many rounds fit into a limit (0: none), judged by the last one; the first is always begun.

    On a machine that is busy all the time, disturbed runs are repeated in vain and eat the rounds.  So repeating is given
    up first, as soon as the time used is ahead of the work done, and rounds only when that is not enough.
    """

    limit_s: float
    rounds: int
    spent_s: float = 0.0
    next_round_s: float = 0.0
    repeating: bool = True

    def fits(self) -> bool:
        return not self.limit_s or not self.next_round_s or self.spent_s + self.next_round_s <= self.limit_s

    def left_s(self, done: int) -> float:
        return self.next_round_s * (self.rounds - done)

    def gives_up_repeating(self, round_s: float, share: float) -> bool:
        """Asked in the middle of a round that has taken so long, `share` of all work being done; True once."""
        slack = 0.1
        if not self.limit_s or not self.repeating or self.spent_s + round_s <= self.limit_s * (share + slack):
            return False
        self.repeating = False
        return True

    def round_done(self, took_s: float, attempts: int, counted: int, again_s: float) -> None:
        """`again_s`: what those programs took of it that the next round has as well."""
        self.spent_s += took_s
        self.next_round_s = again_s if self.repeating or not attempts else again_s * counted / attempts


def run_suite(
    console: Console,
    suite: Suite,
    entries: Sequence[Entry],
    chosen: Sequence[Library],
    rounds: int,
    limit_s: float,
    say: Callable[[str], None],
    writer,
    flush,
) -> int:  # type: ignore[no-untyped-def]
    """All rounds of one suite, or as many as fit into the limit; returns how many those were."""
    memory = default_memory_limit()
    attempts = [0]

    def recorder(entry: Entry):  # type: ignore[no-untyped-def]
        def record(run: Run, library: Library) -> None:
            attempts[0] += 1
            writer.writerow(csv_row(run, library, entry.job.command, suite.name, entry.name))
            flush()

        return record

    loops = [
        (
            entry,
            Interleaver(
                entry.job,
                entry.contenders(chosen),
                Limits(entry.timeout_s, memory),
                record=recorder(entry),
                warm=entry.warm,
                repeats=entry.repeats,
                expected_code=0 if entry.prints_line else None,
                examine=entry.examine,
            ),
        )
        for entry in entries
    ]
    budget, done = Budget(limit_s, rounds), 0
    work, work_done = estimated_seconds(entries, chosen, rounds) or 1.0, 0.0
    with progress_bar(console, remaining=True) as progress:
        task = progress.add_task(suite.name, total=sum(min(rounds, e.most_rounds or rounds) for e in entries))
        for turn in range(rounds):
            if not budget.fits():
                break
            began, before, counted, again_s = time.monotonic(), attempts[0], 0, 0.0
            for entry, loop in loops:
                if not entry.runs_in(turn):
                    continue
                entry_began = time.monotonic()
                progress.update(task, description=f"{suite.name}: round {turn + 1} of {rounds}, {entry.name}")
                loop.repeats = entry.repeats if budget.repeating else 0
                counted += len(loop.round(turn))
                progress.advance(task)
                again_s += time.monotonic() - entry_began if entry.runs_in(turn + 1) else 0.0
                work_done += estimated_seconds([entry], chosen, 1)
                if budget.gives_up_repeating(time.monotonic() - began, work_done / work) and attempts[0] > counted:
                    say(f"{suite.name}: this machine is slow or busy: disturbed runs are not repeated any more, so that rounds fit")
            done += 1
            budget.round_done(time.monotonic() - began, attempts[0] - before, counted, again_s)
            if not console.is_terminal and done < rounds and budget.fits():
                say(
                    f"{suite.name}: round {done} of {rounds} done after {duration(budget.spent_s)}, "
                    f"about {duration(budget.left_s(done))} to go"
                )
    if done < rounds:
        few = "; with fewer than 5 no difference can be shown" if done < LEAST_ROUNDS else ""
        say(
            f"{suite.name}: {done} of {rounds} rounds fitted into {duration(limit_s)}{few} "
            "(--minutes 0 lifts the limit, fewer --peers make a round shorter)"
        )
    return done


def bench(
    console: Console,
    wanted: Sequence[str],
    peer_names: Optional[Sequence[str]],
    rounds: int,
    out: Optional[Path],
    only: Sequence[str],
    same: bool,
    list_them: bool,
    render: bool,
    library: Optional[str],
    minutes: Optional[float] = None,
    pages: Sequence[Path] = (),
) -> int:
    """The verb.  `pages`: Markdown pages whose tables are written at the end (publish.py)."""
    if list_them:
        return _list(console)
    if not wanted:
        raise ToolError(f"name a suite: {', '.join(suites.names())} (./sutler bench --list tells more)")
    say = lambda text: console.print(f"sutler: {text}", markup=False, highlight=False, soft_wrap=True)  # noqa: E731
    loaded = [suites.load(name) for name in wanted]
    peers.named([name for name in peer_names or () if name != "sutler"])  # a name mistyped is told before anything is built
    for page in pages:
        if not page.is_file():
            raise ToolError(f"there is no page {page}")
    folder = out or default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    runs_file = folder / RUNS_FILE
    if runs_file.exists():
        raise ToolError(f"{folder} already holds results; name another folder")
    if any(suite.build for suite in loaded):
        say("building the benchmark programs")
        ours = [f"{name}/all" for name in ("engines", "predict") if (paths.require_tree() / "papers" / name / "CMakeLists.txt").exists()]
        paths.build_preset("release", ["-DSUTLER_BENCH=ON"], ["sutler", "sutler_static", "sutler_hardened", "bench/all", *ours])
    about: dict[str, Any] = {
        "machine": describe(paths.tree()),
        "command": "./sutler " + shlex.join(sys.argv[1:]),
        "suites": {
            suite.name: {
                "title": suite.title,
                "about": suite.about,
                "rounds": rounds or suite.rounds,
                "groups": suite.groups,
                "claims": list(suite.claims),
                "programs": {
                    entry.name: {
                        "figure": entry.figure,
                        "better": entry.better,
                        "also": list(entry.also),
                        "sweep": list(entry.sweep) if entry.sweep else None,
                        "group": entry.group,
                        "counted": entry.counted,
                    }
                    for entry in suite.entries
                },
            }
            for suite in loaded
        },
    }
    interrupted = False
    with runs_file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, CSV_COLUMNS)
        writer.writeheader()
        try:
            for suite in loaded:
                for group in suite.packages:
                    packages.ensure(group, say)
                suites.make_inputs(suite)
                others = peer_names if peer_names is not None else suite.peers if suite.peers is not None else PEERS
                chosen = contenders(suite, others, library, same, say)
                about.setdefault("libraries", {}).update(
                    {item.name: {"preload": list(item.preload), "settings": dict(item.settings)} for item in chosen}
                )
                (folder / ABOUT_FILE).write_text(json.dumps(about, indent=1) + "\n")
                entries = usable(suite, only, say)
                if not entries:
                    continue
                wanted_rounds = rounds or suite.rounds
                limit_s = 60 * (suite.minutes if minutes is None else minutes)
                guess_s = estimated_seconds(entries, chosen, wanted_rounds)
                say(
                    f"{suite.name}: {len(entries)} programs, {wanted_rounds} rounds, under "
                    f"{', '.join(item.name for item in chosen)}: about {duration(guess_s)} on a quiet machine"
                    + (f", at most {duration(limit_s)}" if limit_s and limit_s < 2 * guess_s else "")
                )
                row: dict[str, Any] = about["suites"][suite.name]
                began = time.monotonic()
                row["rounds_done"] = run_suite(
                    console, suite, entries, chosen, wanted_rounds, limit_s, say, writer, stream.flush
                )
                row["seconds"] = round(time.monotonic() - began)
                say(f"{suite.name}: took {duration(row['seconds'])}")
        except KeyboardInterrupt:
            interrupted = True
            say("stopped; every finished run has been written")
    about["finished"] = datetime.now().strftime("%Y-%m-%d %H:%M")
    about["interrupted"] = interrupted
    (folder / ABOUT_FILE).write_text(json.dumps(about, indent=1) + "\n")
    say(f"runs: {runs_file}")
    if interrupted and runs_file.read_text().count("\n") < 2:
        say("no run had finished: there is nothing to report")
    elif render or pages:
        from .report import report

        for page in pages or [None]:
            report(console, folder, None, None, page)
    return 130 if interrupted else 0
