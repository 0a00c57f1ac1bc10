# SPDX-License-Identifier: MIT
"""Suites are data: bench/suites/NAME.toml, papers/suites/NAME.toml.  This module reads one and turns its rows into jobs.

title, about, rounds     what it is, and how often each program runs
build = true             the tree's release build brings the programs (@bench@ is their folder)
packages = "real"        a group of data/packages.toml, or a list of them
[[program]]  name, run; optional: figure (a printed key, or wall/cpu/peak/mean/faults; default ns_per_op for the
             programs of @bench@, else wall), better ("lower" or "higher"), also (further keys), input, outputs, remove, environment,
             hide_output, program (what must exist besides run[0]), timeout, repeats, group, count (true, "cache" or "rate": run
             under callgrind; sutler_tool/counted.py says which figures that gives), foreseen (a function of libm: how well
             its arguments are foreseen, sutler_tool/foreseen.py), seconds (about how long one run takes, for the estimate), rounds (at most so many of the suite's), warm ("off", or how many MiB to touch
             before each run; default: as much as the program needs)
[[sweep]]    as program, run once for each of `values`, which stands in @value@, in the environment too; label names the axis
[[claim]]    what a paper says, and which of this run's figures decide it: sutler_tool/claims.py
[[library]]  name, settings, and preload (files; is_malloc = false where malloc stays the system's) or engine and/or backend
             (names): a further contender
[[group]]    name, title, about, base, bases, under: a table of its own for the programs that say group = name: they
             run under the allocators that `under` lists (@peers@ stands for all peers of the run), each compared with the
             one `bases` says, else with `base` (default: glibc); with `subject` it is the other way round: the ratios are
             the subject's to each of the others, and the best of them is nobody of `twins` (other builds of the subject);
             mean = false where a mean over its programs says nothing; ratios_only = true where of all medians only the
             base's is shown; rounds as a program's, for all of them;
             programs = "SUITE" or "SUITE/GROUP": it has the [[program]] rows of another suite, as they stand there
peers, repeats, timeout, seconds  defaults of the command line's --peers and of the programs' repeats, timeout and seconds
minutes                  no round is begun that would end after so many minutes (default of --minutes)
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

from . import inputs
from .libraries import SAME, Library
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
    "switches": lambda run: float(run.switches),
    "preemptions": lambda run: float(run.preemptions),
}


RUN_OVERHEAD_S = 0.25  # warming the memory, starting the launcher, hashing what was printed


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
    group: str = ""
    under: tuple[str, ...] = ()
    seconds: float = 1.0
    most_rounds: int = 0
    warm: str = "auto"
    counted: bool = False

    def contenders(self, libraries: Sequence[Library]) -> list[Library]:
        """Those of the run's allocators this program runs under; the A/A partner goes where glibc goes."""
        wanted = (*self.under, *([SAME.name] if "glibc" in self.under else []))
        return [library for library in libraries if not self.under or library.name in wanted]

    def runs_in(self, turn: int) -> bool:
        """Whether the round of this number, from 0, has it."""
        return not self.most_rounds or turn < self.most_rounds

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
    engines: tuple[Mapping[str, Any], ...] = ()
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    peers: Optional[tuple[str, ...]] = None
    build: bool = False
    packages: tuple[str, ...] = ()
    minutes: float = 0.0
    claims: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


def folder() -> Path:
    return require_tree() / "bench" / "suites"


def _files() -> dict[str, Path]:
    found = [*folder().glob("*.toml"), *(folder().parent.parent / "papers" / "suites").glob("*.toml")]
    return {path.stem: path for path in found}


def names() -> list[str]:
    return sorted(_files())


def _read(name: str) -> dict[str, Any]:
    """The file of a suite as it is."""
    path = _files().get(name)
    if path is None:
        raise ToolError(f"there is no suite '{name}'; there are: {', '.join(names())}")
    try:
        return tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ToolError(f"{path.name}: {error}") from error


def _defaults(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a suite says for all of its programs."""
    return {key: data[key] for key in ("repeats", "timeout", "seconds") if key in data}


def _borrowed(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows a group has from another suite; none if it has its own only."""
    if "programs" not in row:
        return []
    lender, _, group = row["programs"].partition("/")
    data = _read(lender)
    rows = [
        {**_defaults(data), **program, "group": row["name"]}
        for program in data.get("program", [])
        if not group or program.get("group") == group
    ]
    if not rows:
        raise ToolError(f"group {row['name']}: there are no programs {row['programs']}")
    return rows


def load(name: str) -> Suite:
    """Reads a suite; a mistake in it is reported with its row's name."""
    data = _read(name)
    data["program"] = [*data.get("program", []), *(row for group in data.get("group", []) for row in _borrowed(group))]
    groups = {row["name"]: _with_peers(row) for row in data.get("group", [])}
    defaults = _defaults(data)
    entries = [_entry(name, {**defaults, **row}, groups) for row in data["program"]]
    for row in data.get("sweep", []):
        for value in row["values"]:
            label = row.get("label", "value")
            changed = {
                **defaults,
                **row,
                "name": f"{row['name']}, {value} {label}",
                "run": [w.replace("@value@", str(value)) for w in row["run"]],
                "environment": {k: str(v).replace("@value@", str(value)) for k, v in row.get("environment", {}).items()},
            }
            entry = _entry(name, changed, groups)
            entries.append(Entry(**{**entry.__dict__, "sweep": (row["name"], label, float(value))}))
    further = [
        Library(
            row["name"],
            tuple(_placed(item) for item in row.get("preload", [])),
            {k: str(v) for k, v in row.get("settings", {}).items()},
            is_malloc=bool(row.get("is_malloc", True)),
        )
        for row in data.get("library", [])
        if not _over_something(row)
    ]
    known = {"glibc", "sutler", *(row["name"] for row in data.get("library", [])), *_every_peer()}
    for row in groups.values():
        named = (*row.get("under", ()), row.get("base", "glibc"), *row.get("bases", {}).values(), *row.get("twins", ()))
        strange = [word for word in (*named, row.get("subject", "sutler")) if word not in known]
        if strange:
            raise ToolError(f"suite {name}, group {row['name']}: no library is called {', '.join(strange)}")
    from . import claims

    members = {entry.name: entry.group for entry in entries}
    for row in data.get("claim", []):
        wrong = claims.mistake(row, groups, members, known)
        if wrong:
            raise ToolError(f"suite {name}, claim '{row.get('says', '?')}': {wrong}")
    return Suite(
        name,
        data.get("title", name),
        data.get("about", ""),
        int(data.get("rounds", 5)),
        tuple(entries),
        tuple(further),
        tuple(row for row in data.get("library", []) if _over_something(row)),
        groups,
        tuple(data["peers"]) if "peers" in data else None,
        bool(data.get("build", False)),
        tuple([asked] if isinstance(asked := data.get("packages", []), str) else asked),
        float(data.get("minutes", 0)),
        tuple(data.get("claim", ())),
        data,
    )


def _every_peer() -> list[str]:
    from . import peers

    return [name for name in peers.table() if name != "glibc"]


def _with_peers(row: Mapping[str, Any]) -> dict[str, Any]:
    """A group's row with the peers' names in the place of @peers@; those that do not run have no column."""
    if "under" not in row:
        return dict(row)
    under = [name for word in row["under"] for name in (_every_peer() if word == "@peers@" else [word])]
    return {**row, "under": under}


def _placed(word: str) -> str:
    home = require_tree()
    return (
        word.replace("@bench@", str(home / "build" / "release" / "bench"))
        .replace("@build@", str(home / "build" / "release"))
        .replace("@data@", str(DATA))
        .replace("@tree@", str(home))
        .replace("@python@", sys.executable)
    )


def _over_something(row: Mapping[str, Any]) -> bool:
    """Whether a library is put together from names when the suite runs (it may not be built or fetched yet)."""
    return "engine" in row or "backend" in row


def assembled(row: Mapping[str, Any]) -> Library:
    """An engine over a backend, or that backend alone (a peer, or our own library with settings)."""
    from . import engines

    settings = {key: str(value) for key, value in row.get("settings", {}).items()}
    if "engine" in row:
        return engines.engine(row["engine"], _placed(row.get("backend", "glibc")), row["name"], settings)
    below = engines.backend_file(_placed(row["backend"]))
    return Library(row["name"], (str(below),) if below else (), settings)


def _entry(suite: str, row: Mapping[str, Any], groups: Mapping[str, Mapping[str, Any]]) -> Entry:
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
        "group",
        "count",
        "foreseen",
        "seconds",
        "rounds",
        "warm",
    }
    if unknown:
        raise ToolError(f"suite {suite}, {row['name']}: unknown key {', '.join(sorted(unknown))}")
    group = row.get("group", "")
    if group and group not in groups:
        raise ToolError(f"suite {suite}, {row['name']}: there is no group '{group}'")
    own = any("@bench@" in word for word in row["run"])
    command = tuple(_placed(word) for word in row["run"])
    count = row.get("count", False)
    if count not in (False, True, "cache", "rate"):
        raise ToolError(f"suite {suite}, {row['name']}: count is true, \"cache\" or \"rate\"")
    how = (count,) if isinstance(count, str) else ()
    counted = (sys.executable, "-m", "sutler_tool.counted", *how, "--", *command) if count else command
    if "foreseen" in row:
        counted = (sys.executable, "-m", "sutler_tool.foreseen", row["foreseen"], "--", *command)
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
        counted,
        cwd=place,
        environment={k: str(v) for k, v in row.get("environment", {}).items()},
        outputs=outputs,
        hide_output=own or bool(row.get("hide_output", False)),
        prepare=prepare if swept else None,
    )
    needs = (command[0],) + (("valgrind",) if count else ()) + ((row["program"],) if "program" in row else ())
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
        group=group,
        under=tuple(groups[group].get("under", ())) if group else (),
        seconds=float(row.get("seconds", 0.5 if own else 1.0)),
        most_rounds=int(row.get("rounds", groups[group].get("rounds", 0) if group else 0)),
        warm=_warm(suite, row),
        counted=bool(count) or "foreseen" in row,
    )


def _warm(suite: str, row: Mapping[str, Any]) -> str:
    """What a row says of the memory touched before its runs, as rounds.Interleaver takes it."""
    warm = str(row.get("warm", "auto"))
    if warm not in ("auto", "off") and not warm.isdigit():
        raise ToolError(f"suite {suite}, {row['name']}: warm is \"off\" or a number of MiB")
    return warm


def estimated_seconds(entries: Sequence[Entry], libraries: Sequence[Library], rounds: int) -> float:
    """About how long all rounds take on a quiet machine of today: what the suite says of each program."""
    return sum(
        (entry.seconds + RUN_OVERHEAD_S)
        * (min(rounds, entry.most_rounds) if entry.most_rounds else rounds)
        * len(entry.contenders(libraries))
        for entry in entries
    )


def make_inputs(suite: Suite) -> None:
    """Writes what the suite's programs read."""
    place = cache_dir("bench", "inputs")
    for maker in {row.get("input") for row in suite.meta.get("program", [])} - {None}:
        inputs.MAKERS[maker](place)
