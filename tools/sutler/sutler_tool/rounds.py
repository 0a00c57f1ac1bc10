# SPDX-License-Identifier: MIT
"""Interleaved runs: every allocator once a round, in rotating order, so that no allocator always runs first, or always
after the same one, and a slow minute of the machine is shared by all.

A disturbed run (somebody else used the processors) is repeated at once, a limited number of times; every attempt is
handed to `record`, the least disturbed one counts.  An allocator that does not do the work is tried once more and then
left alone for this program; after a timeout it is left alone immediately.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

from .libraries import Library
from .measure import Limits, Run, run_once, warm_size

REPEATS_WHEN_DISTURBED = 2


@dataclass(frozen=True)
class Job:
    """One program as it is to be run each time."""

    name: str
    command: tuple[str, ...]
    cwd: Optional[Path] = None
    stdin: Optional[Path] = None
    environment: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[Path, ...] = ()
    hide_output: bool = False
    prepare: Optional[Callable[[], None]] = None


def rotated(libraries: Sequence[Library], turn: int) -> list[Library]:
    """The order of round `turn`: each library takes each place equally often."""
    count = len(libraries)
    order = [libraries[(turn + i) % count] for i in range(count)]
    return order if (turn // count) % 2 == 0 else order[::-1]


class Interleaver:
    """One program under several allocators, a round at a time.  What it has learned (the program's own exit code, its
    peak memory, which allocator does not do the work) it keeps between rounds, so that other programs may run between.

    `expected_code` None: the exit code of the first run under glibc is what is expected.
    `warm` is "auto", "off" or a number of MiB.
    """

    def __init__(
        self,
        job: Job,
        libraries: Sequence[Library],
        limits: Limits,
        *,
        record: Callable[[Run, Library], None] = lambda run, library: None,
        expected_code: Optional[int] = None,
        warm: str = "auto",
        repeats: int = REPEATS_WHEN_DISTURBED,
        examine: Callable[[Run], Run] = lambda run: run,
    ) -> None:
        self.job, self.libraries, self.limits, self.record = job, list(libraries), limits, record
        self.expected_code, self.warm, self.repeats, self.examine = expected_code, warm, repeats, examine
        self.failures: dict[str, int] = {}
        self.peak_bytes = 0
        self.learned = False

    def _warm_bytes(self) -> int:
        if self.warm == "off":
            return 0
        return warm_size(self.peak_bytes) if self.warm == "auto" else int(self.warm) << 20

    def _attempt(self, library: Library, turn: int) -> Run:
        job = self.job
        if job.prepare:
            job.prepare()
        run = run_once(
            job.command,
            library,
            replace(self.limits, warm_bytes=self._warm_bytes()),
            environment=job.environment,
            cwd=job.cwd,
            stdin=job.stdin,
            expected_code=self.expected_code or 0,
            outputs=job.outputs,
            hide_output=job.hide_output,
        )
        run = replace(run, round=turn)
        if self.expected_code is None and not library.preload and run.status in ("ok", "failed"):
            self.expected_code = run.exit_code
            run = replace(run, status="ok", detail="")
        run = self.examine(run)
        self.record(run, library)
        self.peak_bytes = max(self.peak_bytes, run.peak_bytes, run.peak_tree_bytes)
        return run

    def round(self, turn: int) -> list[Run]:
        """Runs every library that still does its work once; returns the runs that count."""
        order = rotated(self.libraries, turn)
        if not self.learned:
            order.sort(key=lambda library: bool(library.preload))  # what the program does by itself is learned first
            self.learned = True
        kept = []
        for library in order:
            if self.failures.get(library.name, 0) >= 2:
                continue
            best: Optional[Run] = None
            for _ in range(self.repeats + 1):
                run = self._attempt(library, turn)
                if best is None or not run.ok or run.foreign_s < best.foreign_s:
                    best = run
                if not run.ok or not run.disturbed:
                    break
            assert best is not None
            kept.append(best)
            if not best.ok:
                weight = 2 if best.status in ("timeout", "not-started", "not-loaded") else 1
                self.failures[library.name] = self.failures.get(library.name, 0) + weight
        return kept


def run_rounds(job: Job, libraries: Sequence[Library], rounds: int, limits: Limits, **how: Any) -> list[Run]:
    """All rounds of one program, one after the other; `how` goes to Interleaver."""
    interleaver = Interleaver(job, libraries, limits, **how)
    return [run for turn in range(rounds) for run in interleaver.round(turn)]


def paired(
    runs: Sequence[Run], name: str, base: str, figure: Callable[[Run], Optional[float]]
) -> tuple[list[float], list[float]]:
    """The values of `figure` for two libraries, over the rounds in which both did their work."""
    ours = {run.round: figure(run) for run in runs if run.library == name and run.ok}
    theirs = {run.round: figure(run) for run in runs if run.library == base and run.ok}
    rounds = [turn for turn in sorted(ours) if turn in theirs and ours[turn] is not None and theirs[turn] is not None]
    return [float(ours[turn]) for turn in rounds], [float(theirs[turn]) for turn in rounds]  # type: ignore[arg-type]


def processors() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0))
