# SPDX-License-Identifier: MIT
"""`sutler stats PID`: the heap of a running process, from the page its manager keeps for readers.

Nothing of the process is stopped or asked: the page is a memfd of the manager's thread, read through /proc.  Its layout is
struct sutler_page of sutler.h; the names of the figures are in the page itself.
"""

from __future__ import annotations

import json
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Optional

from rich.console import Console
from rich.table import Table

from .paths import ToolError

THREAD, FILE = "sutler-manager", "/memfd:sutler-stats"
MAGIC = b"sutler1\0"
HEADER = struct.Struct("=8sIIQQ")  # magic, size, sequence, written_ns, size of the statistics
TRIES = 1000


@dataclass(frozen=True)
class Live:
    age_s: float
    figures: Dict[str, int]


def find(pid: int) -> Optional[Path]:
    """The page of a process as a path to open, or None."""
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        try:
            if (thread / "comm").read_text().strip() != THREAD:
                continue
            for descriptor in (thread / "fd").iterdir():
                if os.readlink(descriptor).startswith(FILE):
                    return descriptor
        except OSError:
            continue
    return None


def parse(page: bytes, now_ns: int) -> Optional[Live]:
    """The figures of one copy of a page; None if it was being written."""
    magic, size, sequence, written_ns, _ = HEADER.unpack_from(page)
    if magic != MAGIC:
        raise ToolError("that is not a page of statistics this tool knows")
    if sequence % 2:
        return None
    names = page[size : page.index(b"\0", size)].decode().split()
    values = struct.unpack_from(f"={len(names)}Q", page, HEADER.size)
    return Live((now_ns - written_ns) / 1e9, dict(zip(names, values)))


def read(path: Path) -> Live:
    for _ in range(TRIES):
        first, second = path.read_bytes(), path.read_bytes()
        live = parse(first, time.monotonic_ns())
        if live is not None and first[:16] == second[:16]:
            return live
    raise ToolError("the page of statistics never held still")


def per_minute(pid: int, figures: Dict[str, int]) -> Optional[float]:
    """How many files the library has opened a minute since the process began; None if that is not known."""
    try:
        started = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    except (OSError, IndexError, ValueError):
        return None
    minutes = (time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")) / 60
    return figures["file_opens"] / minutes if minutes > 0 and "file_opens" in figures else None


def _text(name: str, value: int) -> str:
    if not name.endswith("_bytes"):
        return f"{value:,}"
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= scale:
            return f"{value / scale:,.1f} {unit}"
    return f"{value} B"


def stats(console: Console, pid: int, as_json: bool, watch: float) -> int:
    if not Path(f"/proc/{pid}").exists():
        raise ToolError(f"there is no process {pid}")
    while True:
        path = find(pid)
        if path is None:
            raise ToolError(
                f"process {pid} has no manager thread: Sutler is not loaded (ask `sutler doctor {pid}`), the heap is "
                "still below 32 MiB, or SUTLER_MANAGER is off"
            )
        try:
            live = read(path)
        except PermissionError:
            raise ToolError(f"not allowed to look into process {pid}: be its user, or root") from None
        if as_json:
            console.print_json(json.dumps({"pid": pid, "age_seconds": round(live.age_s, 3), **live.figures}))
        else:
            table = Table(title=f"process {pid}, {live.age_s:.1f} s ago", show_header=False)
            table.add_column()
            table.add_column(justify="right")
            for name, value in live.figures.items():
                table.add_row(name, _text(name, value))
            opens = per_minute(pid, live.figures)
            if opens is not None:
                table.add_row("file opens a minute", f"{opens:.1f}")
            console.print(table)
        if watch <= 0:
            return 0
        time.sleep(watch)
