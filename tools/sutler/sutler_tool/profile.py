# SPDX-License-Identifier: MIT
"""`sutler profile`: how much of a program is malloc, and the most any allocator could gain.

Two runs.  The first, with a counting library preloaded, gives calls, sizes and lifetimes exactly.  The second, under
Valgrind's callgrind, gives the share of instructions spent inside malloc and free, and with it Amdahl's bound.
The bound counts instructions only: an allocator also decides where memory lies and how often the kernel is asked, which
can gain more.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Optional, Sequence

from rich.console import Console
from rich.table import Table

from . import callgrind, packages
from .libraries import GLIBC, Library
from .measure import Limits, Run, default_memory_limit, parse_pairs, run_once
from .paths import ToolError, helper
from .preload import refusal

KINDS = ("malloc", "calloc", "realloc", "aligned", "free")


def trace(command: Sequence[str]) -> tuple[Counter[str], Run, int]:
    """Runs under the counting library; returns the counters added up over all processes, the run, and the processes."""
    library = helper("trace.c", "-ldl", "-lpthread", shared=True)
    with tempfile.TemporaryDirectory(prefix="sutler-") as folder:
        run = run_once(
            command,
            Library("trace", (str(library),)),
            Limits(3600, default_memory_limit(), 0),
            environment={"ALLOCATION_TRACE": f"{folder}/trace"},
        )
        files = sorted(Path(folder).glob("trace.*"))
        totals: Counter[str] = Counter()
        for path in files:
            values = {key: int(value) for key, value in parse_pairs(path.read_text()).items()}
            for key in ("peak_bytes", "peak_blocks"):
                totals[key] = max(totals[key], values.pop(key, 0))
            totals.update(values)
    if not files:
        raise ToolError(f"the program left no counts: {run.status} {run.detail} {run.stderr_tail.strip()[-300:]}")
    return totals, run, len(files)


def count_instructions(command: Sequence[str], say) -> Optional[callgrind.Cost]:  # type: ignore[no-untyped-def]
    """Runs under callgrind; None where Valgrind cannot be had."""
    packages.ensure("profile", say)
    if not shutil.which("valgrind"):
        return None
    with tempfile.TemporaryDirectory(prefix="sutler-") as folder:
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        done = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                "--trace-children=yes",
                "--compress-strings=yes",
                "--compress-pos=no",
                f"--callgrind-out-file={folder}/out.%p",
                f"--log-file={folder}/log.%p",
                *command,
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        files = [path for path in Path(folder).glob("out.*") if path.stat().st_size]
        if not files:
            say(f"callgrind counted nothing: {done.stderr.strip()[-200:]}")
            return None
        return callgrind.read(files)


def size_label(bucket: int) -> str:
    """The sizes of a histogram row: powers of two, each row up to and including its power."""
    if bucket < 2:
        return ("0-1", "2")[bucket]
    low, high = (1 << (bucket - 1)) + 1, 1 << bucket

    def short(value: int) -> str:
        for unit, name in ((30, "G"), (20, "M"), (10, "K")):
            if value >= 1 << unit and value % (1 << unit) == 0:
                return f"{value >> unit}{name}"
        return str(value)

    return f"{short(low) if low < 2000 else '>' + short(low - 1)}-{short(high)}"


def histogram(title: str, unit: str, counts: dict[int, int]) -> Table:
    table = Table(title=title, title_justify="left", pad_edge=False)
    table.add_column(unit, justify="right")
    table.add_column("blocks", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    total = sum(counts.values()) or 1
    most = max(counts.values(), default=1)
    for bucket in range(min(counts, default=0), max(counts, default=-1) + 1):
        count = counts.get(bucket, 0)
        table.add_row(size_label(bucket), f"{count:,}", f"{count / total:.1%}", "#" * round(40 * count / most))
    return table


def buckets(totals: Counter[str], prefix: str) -> dict[int, int]:
    return {
        int(key[len(prefix) :]): value
        for key, value in totals.items()
        if key.startswith(prefix) and key[len(prefix) :].isdigit()
    }


def profile(console: Console, command: Sequence[str], json_file: Optional[Path], instructions: bool) -> int:
    """The verb."""
    say = lambda text: console.print(f"sutler: {text}", markup=False, highlight=False, soft_wrap=True)  # noqa: E731
    why = refusal(command[0])
    if why:
        raise ToolError(f"cannot profile: {why}")
    plain = run_once(command, GLIBC, Limits(3600, default_memory_limit(), 0))
    totals, run, processes = trace(command)
    if plain.ok and not run.ok:
        say(f"under the counting library the program ended differently: {run.status} {run.detail}")
    allocations = sum(totals[f"calls_{kind}"] for kind in KINDS[:-1])
    console.print(
        f"{allocations:,} blocks allocated, {totals['calls_free']:,} freed, "
        f"in {processes} process{'es' if processes > 1 else ''}; "
        f"{totals['bytes'] / (1 << 20):,.1f} MiB asked for, at most {totals['peak_bytes'] / (1 << 20):,.1f} MiB "
        f"({totals['peak_blocks']:,} blocks) at a time in one process",
        soft_wrap=True,
    )
    if plain.wall_s:
        console.print(
            f"{(allocations + totals['calls_free']) / plain.wall_s / 1e6:.2f} million calls a second "
            f"of the plain run ({plain.wall_s:.2f} s)"
        )
    console.print("calls: " + ", ".join(f"{kind} {totals[f'calls_{kind}']:,}" for kind in KINDS))
    console.print(histogram("Sizes asked for", "bytes", buckets(totals, "size_")))
    console.print(
        histogram(
            "Lifetimes: bytes the process asked for between a block's birth and its free",
            "bytes",
            buckets(totals, "life_"),
        )
    )
    if totals["end_blocks"]:
        console.print(
            f"{totals['end_blocks']:,} blocks ({totals['end_bytes'] / (1 << 20):,.1f} MiB) were still alive at the end"
        )
    cost = None
    if instructions:
        say("counting instructions under Valgrind (this is slow)")
        cost = count_instructions(command, say)
    if cost and cost.total:
        console.print(
            f"\n{cost.inside:,} of {cost.total:,} instructions are inside the allocator: {cost.share:.1%}", style="bold"
        )
        for kind in KINDS:
            if cost.calls.get(kind):
                console.print(
                    f"  {kind}: {cost.instructions[kind]:,} instructions, "
                    f"{cost.instructions[kind] / cost.calls[kind]:.0f} a call"
                )
        console.print(
            f"If malloc and free cost nothing at all, the program would be at most {cost.bound:.2f} x as fast "
            "(counting instructions; "
            "page faults and cache misses that an allocator causes or avoids come on top).",
            style="bold",
            soft_wrap=True,
        )
    if json_file:
        data = {"command": list(command), "counts": dict(totals), "wall_s": plain.wall_s}
        if cost:
            data["instructions"] = {
                "total": cost.total,
                "inside": dict(cost.instructions),
                "calls": dict(cost.calls),
                "share": cost.share,
                "bound": cost.bound,
            }
        json_file.write_text(json.dumps(data, indent=1) + "\n")
    return 0
