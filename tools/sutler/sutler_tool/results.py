# SPDX-License-Identifier: MIT
"""Reading back what `bench` wrote: rows to runs, runs to figures.

Of several attempts at the same round the one that counts is chosen by the same rule as when it was measured: the first
that did not do its work, else the least disturbed.
"""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

from .measure import Run, check_outputs
from .paths import ToolError
from .rounds import paired
from .stats import Interval, geometric_mean_interval, median_interval, ratio_of_medians
from .suites import BUILT_IN
from .tables import NO_FIGURE, troubles


@dataclass(frozen=True)
class Program:
    """One program's runs and what of them counts."""

    suite: str
    name: str
    figure: str
    better: str
    also: tuple[str, ...]
    sweep: Optional[tuple[str, str, float]]
    runs: tuple[Run, ...]
    attempts: int
    group: str = ""
    counted: bool = False

    def value(self, run: Run, figure: str) -> Optional[float]:
        if figure in BUILT_IN:
            return BUILT_IN[figure](run)
        try:
            value = float(run.extra.get(figure, ""))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def middle(self, library: str, figure: str) -> Optional[Interval]:
        """The median with its interval, or None without a good run."""
        values = [
            value
            for run in self.runs
            if run.library == library and run.ok and (value := self.value(run, figure)) is not None
        ]
        return median_interval(values) if values else None

    def pair(self, library: str, base: str, figure: str) -> tuple[list[float], list[float]]:
        return paired(self.runs, library, base, lambda run: self.value(run, figure))

    def ratio(self, library: str, base: str, figure: str) -> Interval:
        ours, theirs = self.pair(library, base, figure)
        return ratio_of_medians(ours, theirs) if ours and all(theirs) else NO_FIGURE

    def trouble(self, library: str) -> str:
        return troubles(self.runs, library)

    def verdict(self, library: str, base: str) -> int:
        """1 better, -1 worse, 0 no difference shown, by this program's figure."""
        ratio = self.ratio(library, base, self.figure)
        if not math.isfinite(ratio.value) or not ratio.excludes(1.0) or abs(ratio.value - 1) < 0.01:
            return 0
        return 1 if (ratio.value < 1) == (self.better == "lower") else -1


@dataclass(frozen=True)
class Results:
    """A folder that `bench` wrote."""

    folder: Path
    about: Mapping[str, Any]
    libraries: tuple[str, ...]
    programs: tuple[Program, ...]

    def suite(self, name: str) -> list[Program]:
        return [program for program in self.programs if program.suite == name]

    def mean(self, programs: Sequence[Program], library: str, base: str, figure: Optional[str] = None) -> Interval:
        """Geometric mean of ratios, over the programs where both did their work and less is better."""
        rows = []
        for program in programs:
            if figure is None and program.better != "lower":
                continue
            ours, theirs = program.pair(library, base, figure or program.figure)
            if ours and all(value > 0 for value in (*ours, *theirs)):
                rows.append((ours, theirs))
        return geometric_mean_interval(rows) if rows else NO_FIGURE


def _run(row: Mapping[str, str]) -> Run:
    def real(name: str) -> Optional[float]:
        return float(row[name]) if row.get(name) else None

    return Run(
        library=row["library"],
        status=row["status"],
        detail=row["detail"],
        exit_code=int(row["exit_code"]),
        wall_s=float(row["wall_s"]),
        user_s=float(row["user_s"]),
        sys_s=float(row["sys_s"]),
        manager_s=real("manager_s"),
        peak_bytes=int(row["peak_bytes"]),
        peak_tree_bytes=int(row["peak_tree_bytes"]),
        mean_bytes=real("mean_bytes"),
        manager_faults=int(row["manager_faults"]),
        minor_faults=int(row["minor_faults"]),
        major_faults=int(row["major_faults"]),
        switches=int(row["switches"]),
        preemptions=int(row["preemptions"]),
        foreign_s=float(row["foreign_s"]),
        output=row["output"],
        round=int(row["round"]),
        extra=json.loads(row["extra"]) if row["extra"] else {},
    )


def _is_whole(row: Mapping[str, Optional[str]]) -> bool:
    """The command is the last column: a row whose command can be read was written to its end."""
    try:
        return isinstance(json.loads(row.get("command") or ""), list)
    except json.JSONDecodeError:
        return False


def counted(attempts: Sequence[Run]) -> list[Run]:
    """One run for each library and round."""
    chosen: dict[tuple[str, int], Run] = {}
    for run in attempts:
        key = (run.library, run.round)
        best = chosen.get(key)
        if best is None or (best.ok and (not run.ok or run.foreign_s < best.foreign_s)):
            chosen[key] = run
    return list(chosen.values())


def load(folder: Path) -> Results:
    """Everything in a results folder; a damaged last row (the machine stopped) is left out."""
    try:
        about = json.loads((folder / "about.json").read_text())
        with (folder / "runs.csv").open(newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if _is_whole(row)]
    except (OSError, json.JSONDecodeError) as error:
        why = f"no {Path(error.filename).name}" if isinstance(error, FileNotFoundError) else str(error)
        raise ToolError(f"{folder} holds no benchmark results ({why}); `sutler bench --out DIR` makes them") from error
    if not rows:
        raise ToolError(f"{folder / 'runs.csv'} holds no runs")
    groups: dict[tuple[str, str], list[Run]] = {}
    libraries: list[str] = []
    for row in rows:
        run = _run(row)
        groups.setdefault((row["suite"], row["program"]), []).append(run)
        if run.library not in libraries:
            libraries.append(run.library)
    order = [name for name in about.get("libraries", {}) if name in libraries]
    programs = []
    for (suite, name), attempts in groups.items():
        entry = about["suites"][suite]["programs"].get(name, {})
        runs, _ = check_outputs(counted(attempts))
        sweep = entry.get("sweep")
        programs.append(
            Program(
                suite,
                name,
                entry.get("figure") or "wall",
                entry.get("better", "lower"),
                tuple(entry.get("also", ())),
                (sweep[0], sweep[1], float(sweep[2])) if sweep else None,
                tuple(runs),
                len(attempts),
                entry.get("group", ""),
                bool(entry.get("counted", False)),
            )
        )
    return Results(folder, about, tuple(order or libraries), tuple(programs))
