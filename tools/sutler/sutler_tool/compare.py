# SPDX-License-Identifier: MIT
"""`sutler compare`: would it help my program?

The user's program runs under glibc, Sutler and the named peers, interleaved; what it prints is compared; the answer is
a table and one sentence.  `--aa` adds glibc a second time under another name: whatever "difference" it shows is noise.
"""

from __future__ import annotations

import csv
import json
import shlex
import sys
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Mapping, Optional, Sequence

from rich.console import Console
from rich.table import Table

from . import libraries, paths, peers, tables
from .libraries import GLIBC, SAME, Library
from .machine import describe
from .measure import CSV_COLUMNS, Limits, Run, check_outputs, csv_row, default_memory_limit
from .paths import ToolError
from .preload import refusal
from .progress import progress_bar
from .results import counted
from .rounds import Job, run_rounds
from .verdict import sentence

BASE, OURS = "glibc", "sutler"


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    command: tuple[str, ...]
    peers: tuple[str, ...] = ()
    rounds: int = 10
    json_file: Optional[Path] = None
    csv_file: Optional[Path] = None
    plot: Optional[Path] = None
    same: bool = False
    timeout_s: float = 600.0
    memory_bytes: int = 0
    warm: str = "auto"
    ignore_output: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    library: Optional[str] = None


def _captured_input() -> Optional[Path]:
    """Standard input, kept in a file so that every run reads the same; nothing when it is a terminal or empty."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return None
    try:
        data = sys.stdin.buffer.read()
    except (OSError, ValueError, AttributeError):
        return None
    if not data:
        return None
    with tempfile.NamedTemporaryFile(prefix="sutler-stdin-", delete=False) as stream:
        stream.write(data)
    return Path(stream.name)


def contenders(request: Request, say) -> list[Library]:  # type: ignore[no-untyped-def]
    """glibc, Sutler, the peers that could be had, and glibc again if asked."""
    ours = libraries.sutler(paths.library(request.library), request.settings)
    why = libraries.works(ours)
    if why:
        raise ToolError(f"the library does not work here: {why}")
    wanted = [name for name in request.peers if name not in (BASE, OURS)]
    chosen = [GLIBC, ours, *peers.obtain(wanted, say)]
    return chosen + [SAME] if request.same else chosen


def compare(console: Console, request: Request) -> int:
    """Returns 0 when every allocator did the work, 1 when one did not, 130 when the user stopped it."""
    say = lambda text: console.print(f"sutler: {text}", markup=False, highlight=False, soft_wrap=True)  # noqa: E731
    why = refusal(request.command[0])
    if why:
        raise ToolError(f"cannot compare: {why}")
    chosen = contenders(request, say)
    stdin = _captured_input()
    job = Job(shlex.join(request.command)[:60], request.command, stdin=stdin, hide_output=request.ignore_output)
    limits = Limits(request.timeout_s, request.memory_bytes or default_memory_limit())
    everything: list[Run] = []
    stopped = False
    stream = request.csv_file.open("w", newline="") if request.csv_file else None
    writer = csv.DictWriter(stream, CSV_COLUMNS) if stream else None
    if writer:
        writer.writeheader()
    try:
        with progress_bar(console) as progress:
            task = progress.add_task(job.name, total=len(chosen) * request.rounds)

            def record(run: Run, library: Library) -> None:
                everything.append(run)
                progress.update(
                    task, description=f"{library.name:>12}", completed=len({(r.library, r.round) for r in everything})
                )
                if writer and stream:
                    writer.writerow(csv_row(run, library, request.command, "compare", job.name))
                    stream.flush()

            try:
                kept = run_rounds(job, chosen, request.rounds, limits, record=record, warm=request.warm)
            except KeyboardInterrupt:
                stopped, kept = True, counted(everything)
    finally:
        if stream:
            stream.close()
        if stdin:
            stdin.unlink()
    if stopped:
        say(f"stopped after {len(kept)} of {len(chosen) * request.rounds} runs; what follows rests on these")
        if not any(run.library == BASE and run.ok for run in kept):
            return 130
    kept, comparable = check_outputs(kept)
    _judge_base(kept)
    console.print(result_table(kept, chosen))
    repeated, disturbed = len(everything) - len(kept), sum(run.disturbed for run in kept)
    if repeated or disturbed:
        say(
            f"{repeated} runs were repeated because something else used the machine; "
            f"{disturbed} of the {len(kept)} runs that count were disturbed all the same"
        )
        if disturbed * 2 > len(kept):
            say("the machine is too busy for a trustworthy verdict: try again when it is quiet")
    if not comparable and not request.ignore_output:
        say("the program prints something else each time under glibc: its output could not be checked")
    code = base_code(kept)
    if code:
        say(f"the program ends with exit code {code} by itself, under glibc too")
    for library in chosen:
        trouble = tables.troubles(kept, library.name)
        if trouble:
            say(f"{library.name}: {trouble}")
    verdicts = {library.name: verdict(kept, library.name) for library in chosen[1:]}
    console.print()
    for name, text in verdicts.items():
        console.print(text, style="bold" if name == OURS else None, markup=False, highlight=False, soft_wrap=True)
    if request.json_file:
        request.json_file.write_text(json.dumps(as_json(request, kept, chosen, verdicts), indent=1) + "\n")
    if request.plot:
        from . import plots

        plots.save(plots.runs_figure(kept, [library.name for library in chosen], job.name), request.plot)
    if stopped:
        return 130
    return 1 if any(not run.ok for run in kept) else 0


def base_code(runs: Sequence[Run]) -> int:
    """The exit code the program has by itself."""
    return next((run.exit_code for run in runs if run.library == BASE and run.ok), 0)


def _judge_base(runs: Sequence[Run]) -> None:
    """Without good runs under glibc there is nothing to compare with."""
    mine = [run for run in runs if run.library == BASE]
    if any(run.ok for run in mine):
        return
    first = mine[0] if mine else None
    what = f"{first.status} ({first.detail})" if first else "did not run"
    advice = {"timeout": "; --timeout gives it longer", "memory-limit": "; --memory gives it more MiB"}
    what += advice.get(first.status, "") if first else ""
    tail = f"\n{first.stderr_tail.strip()[-800:]}" if first and first.stderr_tail.strip() else ""
    raise ToolError(f"the program does not work by itself, under glibc's malloc: {what}{tail}")


def verdict(runs: Sequence[Run], name: str) -> str:
    """One sentence on one allocator."""
    title = "Sutler" if name == OURS else name
    trouble = tables.troubles(runs, name)
    if trouble:
        return f"{title}: {trouble}; its times do not count"
    return sentence(tables.figures(runs, name, BASE), title)


def result_table(runs: Sequence[Run], chosen: Sequence[Library]) -> Table:
    """Medians, and changes against glibc with their intervals."""
    table = Table(title="Medians (change against glibc, 95 % interval)", title_justify="left", pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("wall", "change of wall time", "user+sys", "manager", "peak memory", "page faults"):
        table.add_column(heading, justify="right")
    for library in chosen:
        name = library.name
        if not any(run.library == name and run.ok for run in runs):
            table.add_row(name, tables.troubles(runs, name) or "no result", "", "", "", "", "")
            continue
        faults = tables.middle(runs, name, lambda run: float(run.faults))
        wall = "" if name == BASE else tables.change(tables.ratio(runs, name, BASE, lambda run: run.wall_s))
        manager = tables.middle(runs, name, lambda run: run.manager_s)
        table.add_row(
            name,
            tables.seconds(tables.middle(runs, name, lambda run: run.wall_s)),
            wall,
            tables.seconds(tables.middle(runs, name, lambda run: run.cpu_s)),
            tables.seconds(manager),
            tables.mebibytes(tables.middle(runs, name, lambda run: float(run.peak_bytes))),
            f"{faults:,.0f}" if faults is not None else "-",
        )
    return table


def as_json(
    request: Request, runs: Sequence[Run], chosen: Sequence[Library], verdicts: Mapping[str, str]
) -> dict[str, object]:
    """Everything, for programs."""
    summary: dict[str, object] = {}
    for library in chosen:
        name = library.name
        figures = tables.figures(runs, name, BASE)
        summary[name] = {
            "wall_s": tables.middle(runs, name, lambda run: run.wall_s),
            "cpu_s": tables.middle(runs, name, lambda run: run.cpu_s),
            "manager_s": tables.middle(runs, name, lambda run: run.manager_s),
            "peak_bytes": tables.middle(runs, name, lambda run: float(run.peak_bytes)),
            "trouble": tables.troubles(runs, name),
            "preload": list(library.preload),
            "against_glibc": {part: asdict(getattr(figures, part)) for part in ("wall", "cpu", "memory")},
        }
    rows = [{**asdict(replace(run, extra={})), "stdout_tail": None} for run in runs]
    return {
        "command": list(request.command),
        "rounds": request.rounds,
        "machine": describe(),
        "summary": summary,
        "verdicts": dict(verdicts),
        "runs": rows,
    }
