# SPDX-License-Identifier: MIT
"""Figures for people: seconds, bytes, changes; and the figures of a set of runs."""

from __future__ import annotations

import math
from collections import Counter
from statistics import median
from typing import Callable, Optional, Sequence

from .measure import Run
from .rounds import paired
from .stats import Interval, ratio_of_medians
from .verdict import Figures

NO_FIGURE = Interval(math.nan, math.nan, math.nan, 0)
ROUNDS_WITH_INTERVAL = 3  # of two runs the interval is so wide that it says only that there were two
UNITS = {"ns_per_op": "ns", "wall": "s", "cpu": "s", "peak": "bytes", "mean": "bytes", "seconds": "s", "longest_us": "us"}


def unit(figure: str) -> str:
    """The unit of a figure, or its own name where that says it."""
    return UNITS.get(figure, figure)


def number(value: float) -> str:
    """Three digits that mean something."""
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.3g}"


def cell(program, library: str, figure: str, scale: float = 1.0) -> str:  # type: ignore[no-untyped-def]
    """A median of a results.Program, with half its interval's width as a percentage; or what went wrong."""
    trouble = program.trouble(library)
    middle = program.middle(library, figure)
    if middle is None:
        return trouble or "-"
    text = number(middle.value * scale)
    if middle.rounds >= ROUNDS_WITH_INTERVAL and middle.value:
        width = abs((middle.high - middle.low) / 2 / middle.value) * 100
        text += " ±>999%" if width > 999 else f" ±{width:.0f}%" if width >= 0.95 else f" ±{width:.1f}%"
    return f"{text} ({trouble})" if trouble else text


def ratio_text(ratio: Interval) -> str:
    """`0.93 (0.91-0.95)`."""
    if not math.isfinite(ratio.value):
        return "-"
    if ratio.rounds < ROUNDS_WITH_INTERVAL:
        return f"{ratio.value:.2f}"
    return f"{ratio.value:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"


def seconds(value: Optional[float]) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    if value < 0.1:
        return f"{value * 1000:.1f} ms"
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def duration(value: float) -> str:
    """How long a person waits: `40 s`, `7 min`, `1 h 10 min`."""
    if value < 90:
        return f"{value:.0f} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def mebibytes(value: Optional[float]) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    amount = value / (1 << 20)
    return f"{amount:.1f} MiB" if amount < 100 else f"{amount:.0f} MiB"


def change(ratio: Interval) -> str:
    """`-7.1 % (-9.0 to -5.2)`."""
    if not math.isfinite(ratio.value):
        return "-"
    if ratio.rounds < 2:
        return f"{(ratio.value - 1) * 100:+.1f} %"
    return f"{(ratio.value - 1) * 100:+.1f} % ({(ratio.low - 1) * 100:+.1f} to {(ratio.high - 1) * 100:+.1f})"


def middle(runs: Sequence[Run], library: str, figure: Callable[[Run], Optional[float]]) -> Optional[float]:
    """The median of a figure over the good runs of one library."""
    values = [value for run in runs if run.library == library and run.ok and (value := figure(run)) is not None]
    return median(values) if values else None


def troubles(runs: Sequence[Run], library: str) -> str:
    """`crashed 2 of 5 (SIGSEGV)`, or an empty string when all is well."""
    mine = [run for run in runs if run.library == library]
    bad = [run for run in mine if not run.ok]
    if not bad:
        return ""
    counts = Counter(run.status for run in bad)
    return "; ".join(
        f"{status} {count} of {len(mine)} ({next(run.detail for run in bad if run.status == status)})"
        for status, count in counts.items()
    )


def ratio(runs: Sequence[Run], library: str, base: str, figure: Callable[[Run], Optional[float]]) -> Interval:
    ours, theirs = paired(runs, library, base, figure)
    return ratio_of_medians(ours, theirs) if ours else NO_FIGURE


def figures(runs: Sequence[Run], library: str, base: str) -> Figures:
    """Everything the verdict needs."""

    def apart(figure: Callable[[Run], Optional[float]], unknown: float) -> float:
        ours, theirs = (middle(runs, name, figure) for name in (library, base))
        return ours - theirs if ours is not None and theirs is not None else unknown

    return Figures(
        wall=ratio(runs, library, base, lambda run: run.wall_s),
        cpu=ratio(runs, library, base, lambda run: run.cpu_s),
        memory=ratio(runs, library, base, lambda run: float(run.peak_bytes)),
        memory_change_bytes=apart(lambda run: float(run.peak_bytes), 0.0),
        wall_change_s=apart(lambda run: run.wall_s, math.inf),
        cpu_change_s=apart(lambda run: run.cpu_s, math.inf),
        base_wall_s=middle(runs, base, lambda run: run.wall_s) or 0.0,
    )
