# SPDX-License-Identifier: MIT
"""`sutler predict`: would it pay to have a second thread compute a program's calls of libm ahead (papers/predict.md)?

The program runs once as it is and once with its calls recorded (papers/predict/log.c).  The log is replayed offline by the
same predictors as would work beside the program, for each order of the context predictor: the thesis's table D.1.  Two
costs of the machine, measured by bench/predict, turn accuracy into nanoseconds: what a call costs whose result is there,
and what a call costs more whose result is not.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Optional, Sequence

from rich.console import Console
from rich.table import Table

from .libraries import GLIBC, Library
from .measure import Limits, Run, default_memory_limit, parse_pairs, run_once
from .paths import ToolError, build_preset, cache_dir, require_tree
from .preload import refusal
from .progress import progress_bar

ORDERS = range(1, 7)
METHODS = ("last", "stride", *(f"order{order}" for order in ORDERS), "best")
TRIES = 6
BUSY_NS = 1500  # a hit takes 100 to 500 ns where two processors are free
TARGETS = ("predict/all", "bench_predict")


@dataclass
class Calls:
    """The calls of one function, or of all, in one process."""

    function: str
    process: int
    calls: int = 0
    replayed: int = 0
    cost_ns: Optional[float] = None
    right: Counter[str] = field(default_factory=Counter)

    def share(self, method: str) -> float:
        return self.right[method] / self.replayed if self.replayed else 0.0


@dataclass(frozen=True)
class Costs:
    """What this machine takes: for a call whose result was computed ahead, and more than the function for one whose was
    not."""

    hit_ns: float
    miss_ns: float

    def gain_ns(self, cost_ns: float, share: float) -> float:
        """What a call gains on average."""
        return share * (cost_ns - self.hit_ns) - (1 - share) * self.miss_ns

    def least_cost_ns(self, share: float) -> float:
        """From which cost of the function on it pays."""
        return self.hit_ns + self.miss_ns * (1 - share) / share if share > 0 else float("inf")

    def least_share(self, cost_ns: float) -> float:
        """From which share on it pays; above 1: never."""
        return self.miss_ns / (cost_ns - self.hit_ns + self.miss_ns) if cost_ns > self.hit_ns else float("inf")


def built(name: str) -> Path:
    """A file of the release build; built when it is not there."""
    path = require_tree() / "build" / "release" / name
    if not path.exists():
        build_preset("release", ("-DSUTLER_BENCH=ON",), TARGETS)
    if not path.exists():
        raise ToolError(f"{name} is not built: ./sutler build --all")
    return path


def record(command: Sequence[str], folder: Path, most: int) -> tuple[Run, list[Path]]:
    """Runs with the calls recorded; the logs, one a thread."""
    library = Library("log", (str(built("predict/libsutler-predict-log.so")),))
    settings = {"SUTLER_PREDICT_LOG": f"{folder}/log", "SUTLER_PREDICT_LOG_CALLS": str(most)}
    run = run_once(command, library, Limits(3600, default_memory_limit(), 0), environment=settings)
    return run, sorted(folder.glob("log.*"))


def replay(logs: Sequence[Path], most: int, step=lambda: None) -> list[Calls]:  # type: ignore[no-untyped-def]
    """What the predictors foresee; threads of a process are added up."""
    found: dict[tuple[str, int], Calls] = {}
    tool = built("predict/predict_replay")
    for log in logs:
        done = subprocess.run([str(tool), "--most", str(most), str(log)], capture_output=True, text=True)
        if done.returncode != 0:
            raise ToolError(f"the log could not be replayed: {done.stderr.strip()}")
        for row in map(parse_pairs, done.stdout.splitlines()):
            key = (row["function"], int(row["process"]))
            entry = found.setdefault(key, Calls(*key))
            calls = int(row["calls"])
            if "cost_ns" in row:
                before = (entry.cost_ns or 0.0) * entry.calls
                entry.cost_ns = (before + float(row["cost_ns"]) * calls) / (entry.calls + calls)
            entry.calls += calls
            entry.replayed += int(row["replayed"])
            entry.right.update({method: int(row[method]) for method in METHODS})
        step()
    return sorted(found.values(), key=lambda entry: (entry.function == "all", entry.function, entry.share("best")))


def table_d1(entries: Sequence[Calls]) -> Table:
    """The thesis's table D.1 with a column for each method."""
    table = Table(title="Arguments foreseen, % correct (the form of the thesis's table D.1)", title_justify="left", pad_edge=False)
    for name in ("Function", "PID", "Calls", "ns", "last", "stride", *(f"ctx {order}" for order in ORDERS), "best"):
        table.add_column(name, justify="left" if name == "Function" else "right", no_wrap=True)
    for entry in entries:
        cost = "" if entry.cost_ns is None else f"{entry.cost_ns:,.0f}"
        shares = (f"{100 * entry.share(method):.2f}" for method in METHODS)
        table.add_row(entry.function, str(entry.process), f"{entry.calls:,}", cost, *shares)
    return table


def machine_costs() -> Costs:
    """From runs of bench/predict with a function of about 2 us: of five each the one that was disturbed least."""
    program = str(built("bench/predict"))

    def runs(*arguments: str) -> list[dict[str, str]]:
        rows = []
        for _ in range(5):
            done = subprocess.run([program, "cost=1500", "ops=20000", *arguments], capture_output=True, text=True)
            if done.returncode != 0:
                raise ToolError(f"bench/predict failed: {done.stderr.strip()}")
            rows.append(parse_pairs(done.stdout))
        return rows

    def least(*arguments: str) -> float:
        return min(float(row["ns_per_op"]) for row in runs(*arguments))

    function = least("form=plain", "gap=0")
    plain = least("form=plain", "gap=1500")
    none = least("form=forced", "gap=1500", "accuracy=0")
    share = 0.0
    for _ in range(TRIES):  # others may keep the second processor busy for a while
        if share < 0.8:
            all_of_them = max(runs("form=forced", "gap=1500", "accuracy=100"), key=lambda row: float(row["hit_share"]))
            share = float(all_of_them["hit_share"])
    if share < 0.5:
        raise ToolError(
            f"this machine cannot compute ahead: only {share:.0%} of the results were there in time. Is a second processor "
            "free (nproc, taskset, the container's quota)? Then try again when the machine is quieter."
        )
    miss = max(none - plain, 5.0)
    hit = (float(all_of_them["ns_per_op"]) - (1 - share) * (plain + miss)) / share - (plain - function)
    return Costs(max(hit, 10.0), miss)


def verdict(entries: Sequence[Calls], costs: Costs, wall_s: float) -> list[str]:
    """A line a function, then the sentence."""
    lines, gain_s, names = [], 0.0, []
    totals: dict[str, Calls] = {}
    for entry in entries:
        if entry.function == "all" or entry.cost_ns is None:
            continue
        total = totals.setdefault(entry.function, Calls(entry.function, 0))
        total.cost_ns = ((total.cost_ns or 0) * total.calls + entry.cost_ns * entry.calls) / (total.calls + entry.calls)
        total.calls += entry.calls
        total.replayed += entry.replayed
        total.right.update(entry.right)
    for name, total in totals.items():
        assert total.cost_ns is not None
        share, gain = total.share("best"), costs.gain_ns(total.cost_ns, total.share("best"))
        of_run = total.calls * total.cost_ns / 1e9 / wall_s if wall_s else 0.0
        least = costs.least_cost_ns(share)
        begins = f"would pay from {least:,.0f} ns on" if least < 1e6 else "would never pay"
        lines.append(
            f"{name}: {total.calls:,} calls of {total.cost_ns:,.0f} ns, {of_run:.1%} of the run, {share:.0%} foreseen: "
            + (f"gains {gain:,.0f} ns a call" if gain > 0 else f"loses {-gain:,.0f} ns a call; {begins}")
        )
        if gain > 0:
            gain_s += total.calls * gain / 1e9
            names.append(name)
    if not names:
        lines.append("It does not pay here: no function is slow enough for what is foreseen of its arguments.")
    elif gain_s < 0.01 * wall_s:
        lines.append(f"It does not pay here: {', '.join(names)} would gain less than a hundredth of the run.")
    else:
        lines.append(
            f"It may pay: {', '.join(names)} would gain up to {min(gain_s / wall_s, 1):.0%} of the run, if a second processor is "
            "free and the calls leave it time. Try it: SUTLER_PREDICT_REPORT=1 LD_PRELOAD="
            f"{built('predict/libsutler-predict.so')}"
        )
    return lines


def advice(run: Run, plain: Run) -> str:
    """Why there may be no log."""
    if plain.ok and not run.ok:
        return f"with its calls recorded the program ended differently: {run.status} {run.detail} {run.stderr_tail.strip()[-300:]}"
    if not plain.ok:
        return f"the program fails by itself: {plain.status} {plain.detail} {plain.stderr_tail.strip()[-300:]}"
    return (
        "the program called none of sin, cos, tan, exp, log, pow, sincos or their float forms in libm.so. It may be linked "
        "statically, use vector forms or a mathematical library of its own, or compute at compile time. Functions of its own "
        "are predicted by the C++ template instead (papers/predict.md)."
    )


def predict(console: Console, command: Sequence[str], most: int, plot: Optional[Path], json_file: Optional[Path]) -> int:
    """The verb."""
    why = refusal(command[0])
    if why:
        raise ToolError(f"cannot record this program's calls: {why}")
    with tempfile.TemporaryDirectory(prefix="sutler-") as folder, progress_bar(console) as progress:
        task = progress.add_task("running the program as it is", total=3)
        plain = run_once(command, GLIBC, Limits(3600, default_memory_limit(), 0))
        progress.update(task, advance=1, description="running it with its calls recorded")
        run, logs = record(command, Path(folder), most)
        if not logs:
            raise ToolError(advice(run, plain))
        progress.update(task, advance=1, total=2 + len(logs), description="replaying the log")
        entries = replay(logs, most, lambda: progress.update(task, advance=1))
    if plain.ok and not run.ok:
        console.print(f"Note: {advice(run, plain)}", highlight=False, markup=False, soft_wrap=True)
    console.print(table_d1(entries))
    console.print("ns: what a call takes; ctx N: the context predictor of order N; best: what would have been used.", soft_wrap=True)
    if any(entry.replayed < entry.calls for entry in entries):
        console.print(f"The replay is of the first {most:,} calls of each thread (--calls).", soft_wrap=True)
    with console.status("measuring what a hit and a miss cost here"):
        costs = machine_costs()
    console.print(
        f"On this machine a call takes {costs.hit_ns:.0f} ns if its result is there, and {costs.miss_ns:.0f} ns more than the "
        "function if not.",
        soft_wrap=True,
    )
    target = plot or cache_dir("predict") / "break-even.svg"
    if costs.hit_ns > BUSY_NS:
        console.print("That is much: the machine is busy. Try again when it is quieter.", soft_wrap=True)
    from . import plots

    shown = [(entry.function, entry.cost_ns, entry.share("best")) for entry in entries if entry.cost_ns and entry.calls > 100]
    plots.save(plots.break_even_figure(costs.least_share, shown, f"{command[0]}: where computing ahead pays"), target)
    console.print(f"Break-even curve: {target}\n", soft_wrap=True, highlight=False)
    lines = verdict(entries, costs, plain.wall_s)
    for line in lines[:-1]:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(lines[-1], style="bold", highlight=False, markup=False, soft_wrap=True)
    if json_file:
        rows = [{**asdict(entry), "right": dict(entry.right)} for entry in entries]
        data = {"command": list(command), "wall_s": plain.wall_s, "costs": asdict(costs), "sequences": rows, "verdict": lines}
        json_file.write_text(json.dumps(data, indent=1) + "\n")
    return 0
