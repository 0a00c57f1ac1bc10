# SPDX-License-Identifier: MIT
"""The command line: parses, calls one function a verb, turns ToolError into one line and an exit code.

Exit codes: 0 all is well; 1 the thing measured or tested is not; 2 the tool could not do what was asked; 130 ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import List, Optional

import typer
from rich.console import Console

from .paths import ToolError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Try, compare and measure memory allocators on your own programs.",
)
console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
PROGRAM = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
LIBRARY = typer.Option(None, "--library", metavar="PATH", help="Use this library instead of the tree's own build.")


def _command(words: List[str]) -> List[str]:
    if not words:
        raise ToolError("name a program after --, for example: -- python3 -c 'print(1)'")
    return words


def _names(text: Optional[str]) -> List[str]:
    """A comma-separated list; `all` stands for every peer there is."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if names == ["all"]:
        from .peers import table

        return [name for name in table() if name != "glibc"]
    return names


@app.command()
def demo(
    rounds: int = typer.Option(5, "-n", min=1, help="Runs of each program under each allocator."),
    library: Optional[str] = LIBRARY,
) -> None:
    """Three real programs under the system's malloc and under Sutler, and one honest sentence."""
    from .demo import demo as run

    raise typer.Exit(run(console, rounds, library))


@app.command()
def test(full: bool = typer.Option(False, "--full", help="The whole matrix: long tests and sanitizers too.")) -> None:
    """Build everything, run all tests, end with `N passed, N failed`."""
    from .testrun import test as run

    raise typer.Exit(run(console, full))


@app.command(context_settings=PROGRAM)
def run(
    program: List[str] = typer.Argument(None, metavar="-- PROGRAM [ARGS...]"),
    manager: Optional[str] = typer.Option(None, "--manager", help="on, off or auto."),
    sync: Optional[str] = typer.Option(None, "--sync", help="rcs, cpu or thread."),
    engine: Optional[str] = typer.Option(None, "--engine", metavar="NAME", help="One of the papers' designs instead."),
    backend: Optional[str] = typer.Option(None, "--backend", metavar="LIB", help="What the engine drives: path or peer."),
    stats: bool = typer.Option(False, "--stats", help="Print a report at the end."),
    hardened: bool = typer.Option(False, "--hardened", help="The hardened library: finds more mistakes, takes more time."),
    library: Optional[str] = LIBRARY,
) -> None:
    """Run a program under the library (the tree's front door does this without Python)."""
    from . import engines, libraries, paths
    from .preload import refusal

    words = _command(program or [])
    if backend and not engine:
        raise ToolError("--backend goes with --engine")
    if hardened and (engine or library):
        raise ToolError("--hardened and --library or --engine: only one of them")
    if engine and library:
        raise ToolError("--engine and --library: only one of them")
    why = refusal(words[0])
    if why:
        raise ToolError(f"cannot run this program under the library: {why}")
    settings = {}
    for name, value, allowed in (
        ("SUTLER_MANAGER", manager, ("on", "off", "auto")),
        ("SUTLER_SYNC", sync, ("rcs", "cpu")),
    ):
        if value is not None:
            if value not in allowed:
                raise ToolError(f"{name.lower().replace('sutler_', '--')} is {', '.join(allowed)}")
            settings[name] = value
    if stats:
        settings["SUTLER_STATS"] = "1"
    if engine:
        chosen = engines.engine(engine, backend or "glibc", settings=settings)
    else:
        chosen = libraries.sutler(paths.hardened() if hardened else paths.library(library), settings)
    environment = {**os.environ, **chosen.environment()}
    for name in libraries.OWN_SETTINGS:
        environment.pop(name, None)
    os.execvpe(words[0], words, environment)


@app.command()
def build(
    presets: List[str] = typer.Argument(None, help="release, debug, asan, tsan, ubsan, coverage, aarch64, musl"),
) -> None:
    """Build the library."""
    from .paths import build_preset

    for preset in presets or ["release"]:
        build_preset(preset)
        console.print(f"built {preset}")


@app.command(context_settings=PROGRAM)
def compare(
    program: List[str] = typer.Argument(None, metavar="-- PROGRAM [ARGS...]"),
    peers: str = typer.Option(
        "", "--with", metavar="NAME,...", help="Peers to run beside glibc and Sutler (see: peers), or all."
    ),
    rounds: int = typer.Option(10, "-n", min=1, help="Runs under each allocator."),
    json_file: Optional[Path] = typer.Option(None, "--json", metavar="FILE", help="Write every figure as JSON."),
    csv_file: Optional[Path] = typer.Option(None, "--csv", metavar="FILE", help="Write every run as CSV."),
    plot: Optional[Path] = typer.Option(None, "--plot", metavar="FILE", help="Draw the runs (SVG, PNG or PDF)."),
    same: bool = typer.Option(False, "--aa", help="Also run glibc against itself: shows the noise floor."),
    timeout: float = typer.Option(600.0, "--timeout", help="Seconds one run may take."),
    memory: int = typer.Option(
        0, "--memory", metavar="MIB", help="Resident memory one run may use (default: half of what is free)."
    ),
    warm: str = typer.Option("auto", "--warm", metavar="auto|off|MIB", help="Memory touched before each run."),
    ignore_output: bool = typer.Option(False, "--ignore-output", help="Do not compare what the program prints."),
    manager: Optional[str] = typer.Option(None, "--manager", help="Sutler's manager: on, off or auto."),
    sync: Optional[str] = typer.Option(None, "--sync", help="Sutler's sync mode: rcs or cpu."),
    library: Optional[str] = LIBRARY,
) -> None:
    """Would it help my program?  Interleaved runs under glibc, Sutler and peers, and a plain verdict."""
    from .compare import Request, compare as run

    settings = {}
    if manager:
        settings["SUTLER_MANAGER"] = manager
    if sync:
        settings["SUTLER_SYNC"] = sync
    request = Request(
        tuple(_command(program or [])),
        tuple(_names(peers)),
        rounds,
        json_file,
        csv_file,
        plot,
        same,
        timeout,
        memory << 20,
        warm,
        ignore_output,
        settings,
        library,
    )
    raise typer.Exit(run(console, request))


@app.command(context_settings=PROGRAM)
def profile(
    program: List[str] = typer.Argument(None, metavar="-- PROGRAM [ARGS...]"),
    json_file: Optional[Path] = typer.Option(None, "--json", metavar="FILE", help="Write every figure as JSON."),
    count: bool = typer.Option(
        True, "--instructions/--no-instructions", help="Count instructions under Valgrind (slow, 30-80 x)."
    ),
) -> None:
    """How much of a program is malloc, in calls, sizes, lifetimes, instructions; the most any allocator could gain."""
    from .profile import profile as run

    raise typer.Exit(run(console, _command(program or []), json_file, count))


@app.command(context_settings=PROGRAM)
def predict(
    program: List[str] = typer.Argument(None, metavar="-- PROGRAM [ARGS...]"),
    calls: int = typer.Option(200000, "--calls", min=1, help="Calls of each thread to record and replay."),
    plot: Optional[Path] = typer.Option(None, "--plot", metavar="FILE", help="Where the break-even curve goes (SVG, PNG or PDF)."),
    json_file: Optional[Path] = typer.Option(None, "--json", metavar="FILE", help="Write every figure as JSON."),
) -> None:
    """Would a second thread pay that computes a program's sines, logarithms and powers ahead?"""
    from .predict import predict as run

    raise typer.Exit(run(console, _command(program or []), calls, plot, json_file))


@app.command()
def bench(
    suites: List[str] = typer.Argument(None, metavar="[SUITE...]", help="Names of suites; --list shows them."),
    peers: Optional[str] = typer.Option(
        None,
        "--peers",
        metavar="NAME,...",
        help="Peers to run beside glibc and Sutler, or all (default: what the suite says, else "
        "mimalloc,jemalloc,gperftools).",
    ),
    rounds: int = typer.Option(0, "-n", help="Rounds (default: what the suite says)."),
    out: Optional[Path] = typer.Option(None, "--out", metavar="DIR", help="Where results go."),
    only: str = typer.Option("", "--only", metavar="NAME,...", help="Only these programs, parts of their names, or groups (without commas), of the suites."),
    same: bool = typer.Option(False, "--aa", help="Also run glibc against itself: shows the noise floor."),
    minutes: Optional[float] = typer.Option(
        None,
        "--minutes",
        min=0,
        help="Begin no round that would end after so many minutes for a suite; 0: no limit (default: what the suite says).",
    ),
    list_them: bool = typer.Option(False, "--list", help="List suites and their programs."),
    render: bool = typer.Option(True, "--report/--no-report", help="Write tables, plots and the page at the end."),
    pages: List[Path] = typer.Option(
        None, "--markdown", metavar="FILE", help="Write the tables into this page as well, as `report --markdown` does; may be repeated."
    ),
    library: Optional[str] = LIBRARY,
) -> None:
    """Run benchmark suites; every run becomes a row of a CSV."""
    from .bench import bench as run

    raise typer.Exit(
        run(
            console,
            suites or [],
            None if peers is None else _names(peers),
            rounds,
            out,
            _names(only),
            same,
            list_them,
            render,
            library,
            minutes,
            pages or [],
        )
    )


@app.command()
def corpus(
    peers: Optional[str] = typer.Option(
        None, "--with", metavar="NAME,...", help="Peers to run beside Sutler and glibc (default: the hardened ones)."
    ),
    each: bool = typer.Option(False, "--each", help="Show every case, not only the counts of each class."),
    markdown: Optional[Path] = typer.Option(
        None, "--markdown", metavar="FILE", help="Write the table between the lines '<!-- table who catches what -->' and "
        "'<!-- end -->' of this page."
    ),
    library: Optional[str] = LIBRARY,
) -> None:
    """Which memory bugs does each allocator catch?  A program commits one after the other."""
    from .corpus import HARDENED_PEERS, corpus as run

    raise typer.Exit(run(console, HARDENED_PEERS if peers is None else _names(peers), markdown, each, library))


@app.command()
def report(
    folder: Path = typer.Argument(..., metavar="DIR", help="A folder that `bench` wrote."),
    screenshot: Optional[Path] = typer.Option(
        None, "--screenshot", metavar="PNG", help="Open the page in headless Chromium and take a picture."
    ),
    against: Optional[Path] = typer.Option(
        None, "--against", metavar="DIR", help="Another run of the same suites: do their intervals agree?"
    ),
    markdown: Optional[Path] = typer.Option(
        None,
        "--markdown",
        metavar="FILE",
        help="Write each table between the lines '<!-- table NAME -->' and '<!-- end -->' of this page; NAME is a group "
        "of the suite, or the suite, and may be followed by ', memory', ', mean memory', ', cpu' or ', faults'.",
    ),
) -> None:
    """Tables, plots and one self-contained HTML page from a benchmark's results."""
    from .report import report as run

    raise typer.Exit(run(console, folder, screenshot, against, markdown))


@app.command()
def peers(
    action: str = typer.Argument("list", metavar="[list|install|path]"),
    names: List[str] = typer.Argument(None, metavar="[NAME...]", help="Which (default: all)."),
) -> None:
    """The other allocators: list them, or get them with the ordinary package clients."""
    from .peers import peers as run

    raise typer.Exit(run(console, action, names or []))


@app.command(context_settings=PROGRAM)
def doctor(
    target: List[str] = typer.Argument(None, metavar="[PID | -- PROGRAM [ARGS...]]"),
    library: Optional[str] = LIBRARY,
) -> None:
    """Is it active in a process, can it be in a program, and what does this machine offer it?"""
    from .doctor import doctor as run

    raise typer.Exit(run(console, target or [], library))


@app.command()
def stats(
    pid: int = typer.Argument(..., metavar="PID"),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    watch: float = typer.Option(0.0, "--watch", min=0.0, metavar="SECONDS", help="Go on, this often."),
) -> None:
    """The heap of a running process, without stopping or asking it."""
    from .live import stats as run

    raise typer.Exit(run(console, pid, as_json, watch))


def _terminated(number: int, frame: object) -> None:
    raise KeyboardInterrupt  # a supervisor's TERM ends a measurement as ctrl-C does: whole rows, nothing left running


def main() -> None:
    signal.signal(signal.SIGTERM, _terminated)
    try:
        sys.exit(app(prog_name="sutler", standalone_mode=False) or 0)
    except ToolError as error:
        print(f"sutler: {error}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        print("sutler: stopped", file=sys.stderr)
        sys.exit(130)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except Exception as error:  # click's own usage errors carry a message and a code; anything else is a bug
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        sys.exit(getattr(error, "exit_code", 2))
