# SPDX-License-Identifier: MIT
"""`sutler demo`: three real programs under the system's malloc and under Sutler, in turn, and one honest sentence."""

from __future__ import annotations

from typing import Callable, Optional

from rich.console import Console
from rich.table import Table

from . import libraries, packages, paths, tables
from .libraries import GLIBC
from .measure import Limits, Run, check_outputs, default_memory_limit
from .progress import progress_bar
from .rounds import paired, run_rounds
from .stats import Interval, geometric_mean_interval
from .verdict import Figures, sentence
from .workloads import demo_jobs

BASE, OURS = "glibc", "sutler"


def demo(console: Console, rounds: int, library: Optional[str]) -> int:
    """Returns the exit code: 0 when every program did its work under both."""
    say = lambda text: console.print(f"[dim]sutler: {text}[/dim]", highlight=False)  # noqa: E731
    packages.ensure("demo", say)
    ours = libraries.sutler(paths.library(library))
    why = libraries.works(ours)
    if why:
        console.print(f"The library cannot be used here: {why}")
        return 1
    console.print(f"Each program runs {rounds} times under glibc's malloc and {rounds} times under Sutler, in turn.\n")
    jobs = demo_jobs(paths.cache_dir("demo"), say)
    results: dict[str, list[Run]] = {}
    limits = Limits(timeout_s=300, memory_bytes=default_memory_limit())
    with progress_bar(console) as progress:
        task = progress.add_task("", total=len(jobs) * 2 * rounds)
        for job in jobs:
            progress.update(task, description=job.name)
            before = len(results) * 2 * rounds
            seen: set[tuple[str, int]] = set()

            def step(run: Run, _library: libraries.Library) -> None:
                seen.add((run.library, run.round))  # noqa: B023
                progress.update(task, completed=before + len(seen))  # noqa: B023

            # A quiet machine is not a condition of a demo: one repeat of a disturbed run is enough.
            runs = run_rounds(job, [GLIBC, ours], rounds, limits, record=step, expected_code=0, repeats=1)
            progress.update(task, completed=before + 2 * rounds)
            results[job.name], comparable = check_outputs(runs)
            if not comparable:
                say(f"{job.name}: output could not be compared")
    console.print(_table(results))
    failed = False
    for name, runs in results.items():
        for which in (BASE, OURS):
            trouble = tables.troubles(runs, which)
            if trouble:
                failed = True
                console.print(f"[bold]{name} under {which}: {trouble}[/bold]", highlight=False)
                tail = next((run.stderr_tail for run in runs if run.library == which and not run.ok), "").strip()
                if tail:
                    console.print(tail[-500:], markup=False, highlight=False)
    console.print()
    console.print(conclusion(results), style="bold", highlight=False, markup=False)
    return 1 if failed else 0


FIGURES: tuple[tuple[str, Callable[[Run], Optional[float]], Callable[[Optional[float]], str]], ...] = (
    ("wall time", lambda run: run.wall_s, tables.seconds),
    ("peak memory", lambda run: float(run.peak_bytes), tables.mebibytes),
    ("cpu time", lambda run: run.cpu_s, tables.seconds),
)


def _table(results: dict[str, list[Run]]) -> Table:
    """Narrow enough for 80 columns: a program's name has a line of its own."""
    table = Table(title="Medians, and the change with its 95 % interval", title_justify="left", pad_edge=False)
    table.add_column("program")
    for heading in ("glibc", "Sutler", "change"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, runs in results.items():
        table.add_row(f"[bold]{name}[/bold]")
        if not any(run.library == OURS and run.ok for run in runs):
            table.add_row("  no result", end_section=True)
            continue
        for label, figure, shown in FIGURES:
            base, ours = (tables.middle(runs, which, figure) for which in (BASE, OURS))
            change = tables.change(tables.ratio(runs, OURS, BASE, figure))
            table.add_row(f"  {label}", shown(base), shown(ours), change)
        manager = tables.middle(runs, OURS, lambda run: run.manager_s)
        table.add_row("  of it the manager", "", tables.seconds(manager), "", end_section=True)
    return table


def conclusion(results: dict[str, list[Run]]) -> str:
    """One sentence over all programs, whichever way it falls."""
    broken = [name for name, runs in results.items() if tables.troubles(runs, OURS)]
    if broken:
        return f"Sutler did not do its work on: {', '.join(broken)}. That is a bug; the times above do not count."

    def mean(figure) -> Interval:  # type: ignore[no-untyped-def]
        rows = [pair for runs in results.values() if (pair := paired(runs, OURS, BASE, figure))[0]]
        return geometric_mean_interval(rows)

    memory_change = sum(
        (tables.middle(runs, OURS, lambda run: float(run.peak_bytes)) or 0)
        - (tables.middle(runs, BASE, lambda run: float(run.peak_bytes)) or 0)
        for runs in results.values()
    )
    figures = Figures(
        mean(lambda run: run.wall_s),
        mean(lambda run: run.cpu_s),
        mean(lambda run: float(run.peak_bytes)),
        memory_change,
    )
    return "Over these programs (geometric mean), against glibc, " + sentence(figures) + "."
