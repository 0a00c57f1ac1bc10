# SPDX-License-Identifier: MIT
"""Suites are data: bench/suites/NAME.toml.  This module reads one and turns its rows into jobs.

title, about, rounds     what it is, and how often each program runs
build = true             the tree's release build brings the programs (@bench@ is their folder)
packages = "real"        a group of data/packages.toml
[[program]]  name, run; optional: figure (a printed key, or wall/cpu/peak/mean/faults; default ns_per_op for the
             programs of @bench@, else wall), better ("lower" or "higher"), also (further keys), input, outputs, remove, environment,
             hide_output, program (what must exist besides run[0]), timeout, repeats
[[sweep]]    as program, run once for each of `values`, which stands in @value@; label names the axis
[[library]]  name, preload, settings: a further contender, such as another sync mode or an engine
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Optional

from . import inputs
from .libraries import Library
from .measure import Run, parse_pairs
from .packages import tomllib
from .paths import DATA, ToolError, cache_dir, require_tree
from .rounds import REPEATS_WHEN_DISTURBED, Job

BUILT_IN: Mapping[str, Callable[[Run], Optional[float]]] = {
    "wall": lambda run: run.wall_s,
    "cpu": lambda run: run.cpu_s,
    "peak": lambda run: float(run.peak_bytes),
    "mean": lambda run: run.mean_bytes,
    "faults": lambda run: float(run.faults),
}


@dataclass(frozen=True)
class Entry:
    """One program of a suite."""

    name: str
    job: Job
    figure: Optional[str] = None
    better: str = "lower"
    also: tuple[str, ...] = ()
    timeout_s: float = 300.0
    repeats: int = REPEATS_WHEN_DISTURBED
    prints_line: bool = False
    needs: tuple[str, ...] = ()
    sweep: Optional[tuple[str, str, float]] = None

    def missing(self) -> str:
        """The first program that is not on this machine."""
        return next((name for name in self.needs if shutil.which(name) is None), "")

    def examine(self, run: Run) -> Run:
        """Takes the printed key=value line into the run; a bench program that ended well without one did not do its
        work.  A printed checksum stands for the output."""
        if not self.prints_line or not run.ok:
            return run
        from dataclasses import replace

        lines = [line for line in run.stdout_tail.splitlines() if line.startswith("name=")]
        if not lines:
            return run.because("failed", "printed no result line")
        pairs = parse_pairs(lines[-1])
        manager = run.manager_s
        if "manager_cpu_seconds" in pairs:
            manager = float(pairs["manager_cpu_seconds"])
        return replace(run, extra=pairs, output=pairs.get("checksum", ""), manager_s=manager)


@dataclass(frozen=True)
class Suite:
    """One file of bench/suites."""

    name: str
    title: str
    about: str
    rounds: int
    entries: tuple[Entry, ...]
    libraries: tuple[Library, ...] = ()
    build: bool = False
    packages: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)


def folder() -> Path:
    return require_tree() / "bench" / "suites"


def names() -> list[str]:
    return sorted(path.stem for path in folder().glob("*.toml"))


def load(name: str) -> Suite:
    """Reads a suite; a mistake in it is reported with its row's name."""
    path = folder() / f"{name}.toml"
    if not path.exists():
        raise ToolError(f"there is no suite '{name}'; there are: {', '.join(names())}")
    try:
        data = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ToolError(f"{path.name}: {error}") from error
    entries = [_entry(name, row) for row in data.get("program", [])]
    for row in data.get("sweep", []):
        for value in row["values"]:
            label = row.get("label", "value")
            changed = {
                **row,
                "name": f"{row['name']}, {value} {label}",
                "run": [w.replace("@value@", str(value)) for w in row["run"]],
            }
            entry = _entry(name, changed)
            entries.append(Entry(**{**entry.__dict__, "sweep": (row["name"], label, float(value))}))
    further = [
        Library(
            row["name"],
            tuple(_placed(item) for item in row.get("preload", [])),
            {k: str(v) for k, v in row.get("settings", {}).items()},
        )
        for row in data.get("library", [])
    ]
    return Suite(
        name,
        data.get("title", name),
        data.get("about", ""),
        int(data.get("rounds", 5)),
        tuple(entries),
        tuple(further),
        bool(data.get("build", False)),
        data.get("packages", ""),
        data,
    )


def _placed(word: str) -> str:
    home = require_tree()
    return (
        word.replace("@bench@", str(home / "build" / "release" / "bench"))
        .replace("@build@", str(home / "build" / "release"))
        .replace("@data@", str(DATA))
    )


def _entry(suite: str, row: Mapping[str, Any]) -> Entry:
    if "name" not in row or not row.get("run"):
        raise ToolError(f"suite {suite}: a program needs a name and a command to run")
    unknown = set(row) - {
        "name",
        "run",
        "figure",
        "better",
        "also",
        "input",
        "outputs",
        "remove",
        "environment",
        "hide_output",
        "program",
        "timeout",
        "repeats",
        "values",
        "label",
    }
    if unknown:
        raise ToolError(f"suite {suite}, {row['name']}: unknown key {', '.join(sorted(unknown))}")
    own = any("@bench@" in word for word in row["run"])
    command = tuple(_placed(word) for word in row["run"])
    maker = row.get("input")
    if maker is not None and maker not in inputs.MAKERS:
        raise ToolError(f"suite {suite}, {row['name']}: no input is called {maker}")
    place = cache_dir("bench", "inputs") if maker is not None else None
    outputs = tuple((place or Path.cwd()) / name for name in row.get("outputs", []))
    swept = [*outputs, *((place or Path.cwd()) / name for name in row.get("remove", []))]

    def prepare() -> None:
        for path in swept:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    figure = row.get("figure", "ns_per_op" if own else "wall")
    job = Job(
        row["name"],
        command,
        cwd=place,
        environment={k: str(v) for k, v in row.get("environment", {}).items()},
        outputs=outputs,
        hide_output=own or bool(row.get("hide_output", False)),
        prepare=prepare if swept else None,
    )
    needs = (command[0],) + ((row["program"],) if "program" in row else ())
    return Entry(
        row["name"],
        job,
        figure,
        row.get("better", "lower"),
        tuple(row.get("also", ())),
        float(row.get("timeout", 300)),
        int(row.get("repeats", REPEATS_WHEN_DISTURBED)),
        own or figure not in BUILT_IN,
        needs,
    )


def make_inputs(suite: Suite) -> None:
    """Writes what the suite's programs read."""
    place = cache_dir("bench", "inputs")
    for maker in {row.get("input") for row in suite.meta.get("program", [])} - {None}:
        inputs.MAKERS[maker](place)
