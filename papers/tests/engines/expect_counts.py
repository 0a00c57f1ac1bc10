#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares an engine's counts of sleeps and wakes with what strace sees: each is a call of the kernel, and each such call is
counted.  What the C library does for the second thread itself is a handful of calls."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HANDFUL = 12


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="one of bench/, which prints the engine's counts in its line")
    parser.add_argument("preload")
    options = parser.parse_args()
    strace = shutil.which("strace")
    if strace is None:
        print("SKIPPED: no strace here")
        return 77
    with tempfile.NamedTemporaryFile("r", prefix="sutler-futex-") as trace:
        command = [strace, "-f", "-qq", "-e", "trace=futex", "-o", trace.name, "-E", f"LD_PRELOAD={options.preload}"]
        done = subprocess.run([*command, *shlex.split(options.program)], capture_output=True, text=True, timeout=100,
                              env=dict(os.environ, SUTLER_ENGINE_SPINS="0"), check=False)
        calls = trace.read()
    if done.returncode != 0 and "ptrace" in done.stderr.lower():
        print("SKIPPED: strace may not trace here")
        return 77
    assert done.returncode == 0, done.stderr
    failures = 0
    for name, call in (("sleeps", r"futex\([^\n]*FUTEX_WAIT"), ("wakes", r"futex\([^\n]*FUTEX_WAKE")):
        counted, seen = int(re.search(rf"\b{name}=(\d+)", done.stdout)[1]), len(re.findall(call, calls))
        wrong = abs(counted - seen) > HANDFUL
        failures += wrong
        print(f"{name}: {counted} counted, strace sees {seen}{'  FAILED' if wrong else ''}")
    if "sleeps=0 " in done.stdout:
        print("FAILED: the program never slept, which shows nothing")
        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
