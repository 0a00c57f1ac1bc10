#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which system calls a run makes, against the sets of support/call_sets.h.

    calls_made.py only SETS PROGRAM ARGS...
        Traced, with TEST_LIBRARY preloaded: it makes no other call than those of the sets (separated by commas).
        Nothing confines it, so this is the library as it is where no filter is in force.
    calls_made.py each SETS CONFINED OTHER_SETS PROGRAM ARGS...
        Under a filter of both kinds of sets, with a single call of SETS left out at a time, it is ended: none is in
        them for nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Those only some processes make.
ONLY_SOME = {
    *("fcntl", "futex_waitv", "geteuid"),  # for a report, where no filter is in force, in the static library
    *("sched_setscheduler", "setpriority"),  # of a program with a real-time policy or a nice value of its own
    *("sched_yield", "sched_setaffinity"),  # another thread is not done yet; the manager is on the program's cpu
}


def sets() -> dict[str, set[str]]:
    text = (HERE.parent / "support/call_sets.h").read_text() + (HERE / "confined.c").read_text()
    found: dict[str, set[str]] = {}
    for name, body in re.findall(r"#define CALLS_(\w+)\(CALL\)((?:.*\\\n)*.*)", text):
        name = "program" if name.startswith("PROGRAM") else name.lower()
        found[name] = found.get(name, set()) | set(re.findall(r"CALL\((\w+)\)", body))
    return found


def chosen(names: str) -> set[str]:
    return set().union(*(sets()[name] for name in names.split(",")))


def only(names: str, *command: str) -> int:
    strace = shutil.which("strace")
    if strace is None:
        print("SKIPPED: no strace here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        library = os.environ["TEST_LIBRARY"]
        run = subprocess.run([strace, "-f", "-qq", "-o", str(log), "-E", f"LD_PRELOAD={library}", *command])
        made = set(re.findall(r"^\d+ +(\w+)\(", log.read_text() if log.exists() else "", re.M))
    if len(made) < 10:
        print("SKIPPED: strace cannot trace here")
        return 77
    others = made - chosen(names)
    print(f"made: {' '.join(sorted(made))}\nothers: {' '.join(sorted(others)) or 'none'}")
    return 1 if others or run.returncode != 0 else 0


def each(names: str, confined: str, others: str, *command: str) -> int:
    whole = f"{names},{others}"
    run = subprocess.run([confined, whole, *command])
    if run.returncode != 0:
        return run.returncode if run.returncode == 77 else 1
    idle = []
    for name in sorted(chosen(names) - ONLY_SOME):
        quietly = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run = subprocess.run([confined, f"{whole},-{name}", *command], **quietly)
        if run.returncode != -signal.SIGSYS:
            idle.append(name)
    print(f"not needed: {' '.join(idle) or 'none'}")
    return 1 if idle else 0


if __name__ == "__main__":
    sys.exit({"only": only, "each": each}[sys.argv[1]](*sys.argv[2:]))
