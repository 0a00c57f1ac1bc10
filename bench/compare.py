#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fast paths side by side, while one works on them.

Runs the micro rows an allocator core is judged by (pairs, batches, random and medium sizes, each with one and two
threads, producer/consumer, mmicro and larson with 2, 64 and 256 threads) under several libraries by LD_PRELOAD.  Runs
are interleaved, the order rotating from round to round, so that a slow minute of the machine hits everybody.  Each
cell is the median of ns_per_op; a run that crashed, hung or found a wrong result is shown as that, never as a time.

The first library is the subject, the others are its peers:

    bench/compare.py --lib sutler=build/release/libsutler.so --lib mimalloc=/path/libmimalloc.so.3 --lib glibc=

(an empty path preloads nothing).  Needs nothing but Python.
"""

import argparse
import csv
import dataclasses
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys

ROWS: dict[str, list[str]] = {
    "pair": ["pair"],
    "batch": ["batch"],
    "random": ["random"],
    "medium": ["medium"],
    "pair-2": ["pair", "threads=2"],
    "batch-2": ["batch", "threads=2"],
    "random-2": ["random", "threads=2", "ops=15000000"],
    "medium-2": ["medium", "threads=2", "ops=2000000"],
    "producer_consumer": ["producer_consumer"],
    "mmicro-2": ["mmicro", "threads=2"],
    "mmicro-64": ["mmicro", "threads=64", "ms=500"],
    "mmicro-256": ["mmicro", "threads=256", "ms=500"],
    "larson-2": ["larson", "threads=2"],
    "larson-64": ["larson", "threads=64", "ms=500"],
    "larson-256": ["larson", "threads=256", "ms=500"],
}
TIMEOUT_SECONDS = 60


@dataclasses.dataclass
class Run:
    row: str
    library: str
    round: int
    status: str  # "ok", "crash SIGSEGV", "exit 1", "timeout", "no result"
    ns_per_op: float | None
    line: str
    command: str


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def execute(programs: pathlib.Path, row: str, library: str, path: str, round_number: int) -> Run:
    command = [str(programs / ROWS[row][0]), *ROWS[row][1:]]
    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    shown = " ".join(command)
    if path:
        environment["LD_PRELOAD"] = path
        shown = f"LD_PRELOAD={path} {shown}"
    run = Run(row, library, round_number, "ok", None, "", shown)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        run.status = "timeout"
        return run
    run.line = done.stdout.strip()
    # The loader only warns about a library it cannot preload, and then measures the C library's allocator.
    if "cannot be preloaded" in done.stderr:
        sys.exit(f"{path}: cannot be preloaded")
    if done.returncode < 0:
        run.status = f"crash {signal_name(-done.returncode)}"
    elif done.returncode:
        run.status = f"exit {done.returncode}"
    elif found := re.search(r"\bns_per_op=([0-9.]+)", run.line):
        run.ns_per_op = float(found.group(1))
    else:
        run.status = "no result"
    return run


def median(runs: list[Run], row: str, library: str) -> float | str:
    """The median time, or the status of the first run that failed."""
    mine = [run for run in runs if run.row == row and run.library == library]
    for run in mine:
        if run.ns_per_op is None:
            return run.status
    return statistics.median(run.ns_per_op for run in mine if run.ns_per_op is not None)


def print_table(runs: list[Run], rows: list[str], libraries: list[str]) -> None:
    subject, peers = libraries[0], libraries[1:]
    heads = ["ns/op", *libraries]
    if peers:
        heads += [f"/{peers[0]}", "/best", "best peer"]
    lines = [heads]
    ratios: dict[str, list[float]] = {"first": [], "best": []}
    for row in rows:
        cells = {library: median(runs, row, library) for library in libraries}
        line = [row, *(f"{cell:.2f}" if isinstance(cell, float) else cell for cell in cells.values())]
        own = cells[subject]
        times = {peer: cells[peer] for peer in peers if isinstance(cells[peer], float)}
        if peers and isinstance(own, float):
            first = own / times[peers[0]] if peers[0] in times else None
            best = min(times, key=lambda peer: times[peer], default=None)
            if first is not None:
                ratios["first"].append(first)
            if best is not None:
                ratios["best"].append(own / times[best])
            line += [f"{first:.2f}" if first else "-", f"{own / times[best]:.2f}" if best else "-", best or "-"]
        lines.append(line)
    if ratios["first"] or ratios["best"]:
        means = [f"{math.exp(statistics.fmean(map(math.log, r))):.3f}" if r else "-" for r in ratios.values()]
        lines.append(["geometric mean", *[""] * len(libraries), *means, ""])
        worst = f"{max(ratios['best']):.2f}" if ratios["best"] else "-"
        lines.append(["worst", *[""] * len(libraries), "", worst, ""])
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(heads))]
    for line in lines:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))))
    crashed = [run for run in runs if run.ns_per_op is None]
    if crashed:
        print(f"\n{len(crashed)} of {len(runs)} runs failed; rows with a failed run have no time and no ratio:")
        for status, command in sorted({(run.status, run.command) for run in crashed}):
            print(f"  {status}: {command}")


def write_csv(path: str, runs: list[Run]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(field.name for field in dataclasses.fields(Run))
        writer.writerows(dataclasses.astuple(run) for run in runs)


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", action="append", required=True, metavar="NAME=PATH", help="the first is the subject")
    parser.add_argument("--runs", type=int, default=5, help="runs of each row under each library (5)")
    parser.add_argument("--rows", default="", metavar="REGEX", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--bin", type=pathlib.Path, default=root / "build/release/bench", help="built programs")
    parser.add_argument("--csv", metavar="FILE", help="every run, unfiltered")
    arguments = parser.parse_args()

    libraries: dict[str, str] = {}
    for item in arguments.lib:
        name, separator, path = item.partition("=")
        if not separator or not name or name in libraries:
            parser.error(f"--lib {item}: expected NAME=PATH, each name once")
        if path and not pathlib.Path(path).is_file():
            parser.error(f"--lib {item}: no such file")
        libraries[name] = str(pathlib.Path(path).resolve()) if path else ""
    rows = [row for row in ROWS if re.search(arguments.rows, row)]
    missing = sorted({ROWS[row][0] for row in rows if not (arguments.bin / ROWS[row][0]).exists()})
    if not rows or missing or arguments.runs < 1:
        parser.error(f"nothing to run: rows {rows}, not built in {arguments.bin}: {missing}")

    runs: list[Run] = []
    names = list(libraries)
    try:
        for round_number in range(arguments.runs):
            for place, row in enumerate(rows):
                turn = (round_number + place) % len(names)
                for name in names[turn:] + names[:turn]:
                    progress(f"round {round_number + 1}/{arguments.runs} {row} {name}")
                    runs.append(execute(arguments.bin, row, name, libraries[name], round_number))
    except KeyboardInterrupt:
        complete = {row for row in rows if {(run.row, run.library) for run in runs} >= {(row, name) for name in names}}
        rows = [row for row in rows if row in complete]
        print("\ninterrupted: rows without a run of every library are left out", file=sys.stderr)
    progress("")
    if arguments.csv:
        write_csv(arguments.csv, runs)
    print_table(runs, rows, names)
    return 1 if any(run.ns_per_op is None for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
