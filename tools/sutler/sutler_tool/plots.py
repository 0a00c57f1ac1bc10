# SPDX-License-Identifier: MIT
"""Pictures of runs.  Every picture shows the single runs or the interval, never a bare bar."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Mapping, Sequence

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from .measure import Run  # noqa: E402
from .stats import Interval  # noqa: E402

OURS = "#b5442a"
OTHERS = "#4d6b8a"
pyplot.rcParams.update({"svg.hashsalt": "sutler", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})


def colour(name: str) -> str:
    return OURS if name.startswith("sutler") else OTHERS


def runs_figure(runs: Sequence[Run], names: Sequence[str], title: str) -> Figure:
    """Each run as a dot, one column an allocator: wall time, cpu time, peak memory."""
    panels = (
        ("wall time, s", lambda run: run.wall_s),
        ("cpu time, s", lambda run: run.cpu_s),
        ("peak memory, MiB", lambda run: run.peak_bytes / (1 << 20)),
    )
    figure, axes = pyplot.subplots(1, len(panels), figsize=(3.2 * len(panels) + 0.1 * len(names), 3.4))
    for axis, (label, value) in zip(axes, panels):
        for place, name in enumerate(names):
            values = [value(run) for run in runs if run.library == name and run.ok]
            shift = [place + 0.16 * ((index % 5) - 2) / 2 for index in range(len(values))]
            axis.plot(shift, values, "o", color=colour(name), markersize=4, alpha=0.7)
            if values:
                middle = sorted(values)[len(values) // 2]
                axis.plot([place - 0.3, place + 0.3], [middle, middle], color="black", linewidth=1)
        axis.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axis.set_title(label, fontsize=9)
        axis.set_ylim(bottom=0)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    return figure


def ratios_figure(rows: Sequence[tuple[str, Mapping[str, Interval]]], names: Sequence[str], title: str) -> Figure:
    """One line a program, one mark an allocator: the ratio to the base with its interval, on a log axis."""
    figure, axis = pyplot.subplots(figsize=(8.5, 0.6 + 0.32 * max(1, len(rows))))
    marks = "osD^vP*X<>hd"
    for index, name in enumerate(names):
        at = [place + 0.5 * (index / max(1, len(names) - 1) - 0.5) for place in range(len(rows))]
        points = [(y, row[1][name]) for y, row in zip(at, rows) if name in row[1] and row[1][name].value > 0]
        if not points:
            continue
        values = [ratio.value for _, ratio in points]
        below = [max(0.0, ratio.value - ratio.low) for _, ratio in points]
        above = [max(0.0, ratio.high - ratio.value) for _, ratio in points]
        paint = OURS if name.startswith("sutler") else pyplot.get_cmap("tab20")(index % 20)
        axis.errorbar(
            values,
            [y for y, _ in points],
            xerr=[below, above],
            fmt=marks[index % len(marks)],
            markersize=4,
            linewidth=0.8,
            color=paint,
            label=name,
            zorder=3 if name.startswith("sutler") else 2,
        )
    axis.axvline(1.0, color="black", linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_yticks(range(len(rows)), [name for name, _ in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.grid(axis="x", linewidth=0.3)
    axis.set_title(title, fontsize=9, loc="left")
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    figure.tight_layout()
    return figure


def save(figure: Figure, path: Path) -> None:
    """Writes one picture in the format of its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def svg_text(figure: Figure) -> str:
    """The picture as an <svg> element to stand in a page."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    text = stream.getvalue()
    return text[text.index("<svg") :]


def sweep_figure(names, programs, sweep: str) -> Figure:  # type: ignore[no-untyped-def]
    """A figure over a swept parameter, one line an allocator, with intervals."""
    mine = [program for program in programs if program.sweep and program.sweep[0] == sweep]
    figure, axis = pyplot.subplots(figsize=(6.5, 3.6))
    for index, name in enumerate(names):
        points = [(program.sweep[2], middle) for program in mine if (middle := program.middle(name, program.figure))]
        if not points:
            continue
        values = [middle.value for _, middle in points]
        spread = [
            [middle.value - middle.low for _, middle in points],
            [middle.high - middle.value for _, middle in points],
        ]
        paint = OURS if name.startswith("sutler") else pyplot.get_cmap("tab20")(index % 20)
        axis.errorbar(
            [x for x, _ in points], values, yerr=spread, fmt="o-", markersize=3, linewidth=1, color=paint, label=name
        )
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_ylim(bottom=0)
    axis.set_xlabel(mine[0].sweep[1])
    axis.set_ylabel(mine[0].figure)
    axis.set_title(sweep, fontsize=9, loc="left")
    axis.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    figure.tight_layout()
    return figure


def break_even_figure(least_share, points, title: str) -> Figure:  # type: ignore[no-untyped-def]
    """From which share of foreseen arguments on a function of a cost (10 ns to 10 us) pays; `points` are functions that
    were measured: name, ns, share."""
    figure, axis = pyplot.subplots(figsize=(6.5, 3.8))
    costs = [10 ** (1 + 3 * step / 300) for step in range(301)]
    line = [(cost, least_share(cost)) for cost in costs]
    inside = [(cost, share) for cost, share in line if share <= 1]
    if inside:
        axis.plot(*zip(*inside), color="black", linewidth=1)
        axis.fill_between([c for c, _ in inside], [s for _, s in inside], 1, color=OURS, alpha=0.15, label="pays")
        axis.legend(fontsize=7, frameon=False, loc="lower left")
    for place, (name, cost, share) in enumerate(points):
        axis.plot([cost], [share], "o", markersize=4, color=OTHERS)
        axis.annotate(name, (cost, share), textcoords="offset points", xytext=(4, 3 + 7 * (place % 3)), fontsize=7)
    axis.set_xscale("log")
    axis.set_xlim(min([10, *(cost for _, cost, _ in points)]) * 0.9, max([1e4, *(cost for _, cost, _ in points)]) * 1.1)
    axis.set_ylim(0, 1.02)
    axis.set_xlabel("cost of the function, ns")
    axis.set_ylabel("share of arguments foreseen")
    axis.set_title(title, fontsize=9, loc="left")
    figure.tight_layout()
    return figure
