#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every engine over every backend: real programs with the same output as without, and forks under churn, in one table.

    papers/tests/engines/matrix.py build/release --record FILE [--engines a,b] [--backends a,b] [--forks 10000]
    papers/tests/engines/matrix.py --record FILE --markdown papers/engines.md

The first form runs, and adds what it found to FILE after each cell, so that a run that is stopped loses nothing and another
goes on where it ended: a cell that FILE has at this commit is not run again, and forks are counted up to the number asked
for.  The second form writes the table between `<!-- matrix -->` and `<!-- /matrix -->` of a page.

A cell says `same`, or what went wrong.  Forks are those of the test `engines.forks` (two threads fork while two allocate,
children check the heap they got, allocate, fork again), in runs of a few hundred, because each has a watchdog, and so has
each child.  These count seconds in which the process could run (engine.h): a machine that stands still is no hang, and a
run that fails has failed."""

import argparse
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import programs

BACKENDS = ("glibc", "jemalloc", "mimalloc", "sutler")
COLUMNS = ("gcc", "gawk", "python3", "sqlite3", "redis-server", "paper")
FORKS_A_RUN = 200
MARK = re.compile(r"^<!-- matrix -->\n.*?^<!-- /matrix -->$", re.M | re.S)


def backend_file(build: Path, name: str) -> str:
    """The library below; an empty string for the C library's own, and where there is none."""
    if name == "sutler":
        return str(build / "libsutler.so")
    cache = (build / "CMakeCache.txt").read_text()
    found = re.search(rf"^ENGINES_{name.upper()}:\w+=(.*)$", cache, re.M)
    return found.group(1) if found and not found.group(1).endswith("NOTFOUND") else ""


def same_output(case: str, preload: str, bench: str) -> str:
    lacks = programs.missing(case, bench)
    if lacks:
        return f"left out: {lacks}"
    try:
        expected, got = programs.run(programs.CASES[case], None, bench), programs.run(programs.CASES[case], preload, bench)
    except subprocess.TimeoutExpired as late:
        return f"hangs (ended after {late.timeout:.0f} s)"
    if expected[0] != 0 or not expected[1]:
        return "left out: fails without the engine"
    if got[:2] != expected[:2]:
        return f"differs (status {got[0]})"
    return "said something" if any(line.startswith("sutler: ") for line in got[2].splitlines()) else "same"


def forked(build: Path, environment: dict[str, str], count: int) -> str:
    """An empty string where all went well."""
    done = subprocess.run([build / "tests/engines/engines_forks", "--forks", str(count)], env=environment,
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else f"status {done.returncode}: {(done.stdout + done.stderr).strip()[-200:]}"


class Record:
    """What was found so far, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.about = json.loads(path.read_text()) if path.exists() else {"commits": [], "cells": {}}

    def cell(self, engine: str, backend: str) -> dict:
        return self.about["cells"].setdefault(f"{engine} {backend}", {})

    def keep(self, commit: str) -> None:
        if commit not in self.about["commits"]:
            self.about["commits"].append(commit)
        self.about["date"] = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.about, indent=1) + "\n")
        part.replace(self.path)


def run_pair(build: Path, record: Record, commit: str, engine: str, backend: str, forks: int) -> None:
    cell, below = record.cell(engine, backend), backend_file(build, backend)
    if backend != "glibc" and not below:
        cell.update({"left out": f"no {backend} here"})
        return record.keep(commit)
    preload = ":".join([str(build / "engines" / f"libsutler_{engine}.so"), *([below] if below else [])])
    for case in COLUMNS:
        if case not in cell:
            cell[case] = same_output(case, preload, str(build / "bench"))
            print(f"{engine} over {backend}: {case}: {cell[case]}", flush=True)
            record.keep(commit)
    environment = {**os.environ, "LD_PRELOAD": preload, "TEST_ENGINE": engine}
    while cell.get("forks", 0) < forks and not cell.get("forks failed"):
        count = min(FORKS_A_RUN, forks - cell.get("forks", 0))
        cell["forks failed"] = forked(build, environment, count)
        cell["forks"] = cell.get("forks", 0) + (0 if cell["forks failed"] else count)
        record.keep(commit)
    print(f"{engine} over {backend}: {cell.get('forks', 0)} forks {cell.get('forks failed', '')}", flush=True)


def table(record: Record) -> str:
    lines = ["| engine | backend | " + " | ".join(COLUMNS) + " | forks |", "|---|---|" + "---|" * len(COLUMNS) + "---:|"]
    for pair, cell in record.about["cells"].items():
        engine, backend = pair.split(" ")
        words = [cell.get(case, cell.get("left out", "not run")) for case in COLUMNS]
        count = f"{cell.get('forks', 0):,}"
        trouble = f", then {cell['forks failed']}" if cell.get("forks failed") else ""
        lines.append(f"| `{engine.replace('_', '-')}` | {backend} | " + " | ".join(words) + f" | {count}{trouble} |")
    head = f"{record.about.get('date', '')}, commit {', '.join(record.about['commits'])}; {os.cpu_count()} processors."
    return f"<!-- matrix -->\n\n{head}\n\n" + "\n".join(lines) + "\n\n<!-- /matrix -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=Path)
    parser.add_argument("--record", required=True, type=Path)
    parser.add_argument("--engines", default="")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--forks", type=int, default=10000)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    record = Record(options.record)
    if options.build:
        build = options.build.resolve()
        commit = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=build, capture_output=True,
                                text=True).stdout.strip()
        built = sorted(path.stem[len("libsutler_"):] for path in (build / "engines").glob("libsutler_*.so"))
        for engine in [name.replace("-", "_") for name in options.engines.split(",") if name] or built:
            for backend in options.backends.split(","):
                run_pair(build, record, commit, engine, backend, options.forks)
    if options.markdown:
        text = options.markdown.read_text()
        if not MARK.search(text):
            print(f"{options.markdown} has no place for the table: <!-- matrix --> and <!-- /matrix -->", file=sys.stderr)
            return 1
        options.markdown.write_text(MARK.sub(lambda _: table(record), text))
    wrong = [pair for pair, cell in record.about["cells"].items()
             if cell.get("forks failed") or any(cell.get(case, "same").split()[0] in ("differs", "hangs", "said") for case in COLUMNS)]
    print(f"{len(record.about['cells'])} pairs, {len(wrong)} with trouble {' '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
