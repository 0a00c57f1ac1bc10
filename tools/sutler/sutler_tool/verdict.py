# SPDX-License-Identifier: MIT
"""Plain words for intervals.  "7 % faster" means: takes 7 % less time.

A difference is named only when its interval leaves "none" out and it is large enough to matter: 1 % and half a
millisecond of time (loading any library costs that), 2 % and 1 MiB of memory, 2 % of cpu time and 1 % of the wall time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .stats import LEAST_ROUNDS, Interval

WALL_MATTERS = 0.01
CPU_MATTERS = 0.02
MEMORY_MATTERS = 0.02
MEMORY_MATTERS_BYTES = 1 << 20
SECONDS_MATTER = 0.0005


@dataclass(frozen=True)
class Figures:
    """Ratios of a library to the base: below 1 is better."""

    wall: Interval
    cpu: Interval
    memory: Interval
    memory_change_bytes: float
    wall_change_s: float = math.inf
    cpu_change_s: float = math.inf
    base_wall_s: float = 0.0


def matters(ratio: Interval, least: float) -> int:
    """-1: shown to be less; 1: shown to be more; 0: no difference shown."""
    if not math.isfinite(ratio.value) or not ratio.excludes(1.0) or abs(ratio.value - 1) < least:
        return 0
    return -1 if ratio.value < 1 else 1


def percent(share: float) -> str:
    """A percentage with no more digits than it deserves."""
    number = abs(share) * 100
    return f"{number:.1f} %" if number < 9.95 else f"{number:.0f} %"


def span(ratio: Interval) -> str:
    """The interval of a change, as percentages of the base."""
    low, high = sorted(((ratio.low - 1) * 100, (ratio.high - 1) * 100), key=abs)
    if ratio.low < 1 < ratio.high:
        return f"{(ratio.low - 1) * 100:+.1f} to {(ratio.high - 1) * 100:+.1f} %"
    return f"{abs(low):.1f}-{abs(high):.1f} %"


def sentence(figures: Figures, name: str = "Sutler") -> str:
    """What a user should take away."""
    wall = matters(figures.wall, WALL_MATTERS)
    cpu = matters(figures.cpu, CPU_MATTERS)
    memory = matters(figures.memory, MEMORY_MATTERS)
    if abs(figures.memory_change_bytes) < MEMORY_MATTERS_BYTES:
        memory = 0
    if abs(figures.wall_change_s) < SECONDS_MATTER:
        wall = 0
    if abs(figures.cpu_change_s) < max(SECONDS_MATTER, WALL_MATTERS * figures.base_wall_s):
        cpu = 0
    rounds = figures.wall.rounds
    if rounds < LEAST_ROUNDS:
        many = "s" if rounds != 1 else ""
        return f"{name}: nothing can be shown with {rounds} run{many} each; use -n {LEAST_ROUNDS} or more"
    if not (wall or cpu or memory):
        return f"{name}: no difference can be shown with {rounds} runs (time {span(figures.wall)})"
    parts = []
    if wall:
        parts.append(f"{percent(figures.wall.value - 1)} {'faster' if wall < 0 else 'slower'} ({span(figures.wall)})")
    else:
        parts.append(f"no difference in time can be shown with {rounds} runs ({span(figures.wall)})")
    if memory:
        parts.append(f"{percent(figures.memory.value - 1)} {'less' if memory < 0 else 'more'} memory")
    if cpu:
        parts.append(f"{percent(figures.cpu.value - 1)} {'less' if cpu < 0 else 'more'} cpu")
    return f"{name}: {', '.join(parts)}; {advice(wall, cpu, memory, figures)}"


def advice(wall: int, cpu: int, memory: int, figures: Figures) -> str:
    """Whether to use it, and what it costs."""
    if wall < 0:
        if memory > 0 and figures.memory.value > 1.10:
            return "worth it where memory is not short"
        if cpu > 0 and figures.cpu.value - 1 > 1 - figures.wall.value:
            return "worth it where a second core is idle"
        return "worth it"
    if wall > 0:
        return "worth it only where memory is short" if memory < 0 and figures.memory.value < 0.9 else "not worth it"
    if memory < 0:
        return "worth it where memory is short"
    if memory > 0:
        return "not worth it"
    return "worth it where cpu time is what counts" if cpu < 0 else "not worth it"
