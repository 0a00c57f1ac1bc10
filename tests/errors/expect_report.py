#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one buggy program and compares what the library said with what it must say.

The program prints "expect: LINE" (exact) or "expect-pattern: REGEX" on stdout before it makes the bad call; several of
them are alternatives.  The library's lines are those on stderr that begin with "sutler: ".

  --mode abort    exactly one such line, as expected, and death by SIGABRT
  --mode report   the line, then the program goes on and prints "survived" and exits 0
  --mode effort   either as abort, or a silent "survived"; "doubled" too with --known-limit
  --mode any      as effort, and death by SIGSEGV or SIGBUS as well
"""

import argparse
import os
import re
import signal
import subprocess
import sys


def fail(reason: str, run: "subprocess.CompletedProcess[str]") -> int:
    print(f"FAILED: {reason}\nstatus {run.returncode}\nstdout:\n{run.stdout}\nstderr:\n{run.stderr}")
    return 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["abort", "report", "effort", "any"], required=True)
    parser.add_argument("--known-limit", action="store_true")
    parser.add_argument("--lib", required=True)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    environment = dict(os.environ, LD_PRELOAD=options.lib)
    environment["SUTLER_ON_ERROR"] = "report" if options.mode == "report" else "abort"
    run = subprocess.run(
        options.command, env=environment, capture_output=True, text=True, errors="replace", timeout=60, check=False
    )
    if run.returncode == 77:
        print(run.stdout)
        return 77
    if "FAILED" in run.stdout:
        return fail("the program's own check failed", run)

    exact = re.findall(r"^expect: (.*)$", run.stdout, re.M)
    patterns = [re.escape(line) for line in exact] + re.findall(r"^expect-pattern: (.*)$", run.stdout, re.M)
    said = [line for line in run.stderr.splitlines() if line.startswith("sutler: ")]
    as_expected = bool(said) and all(any(re.fullmatch(p, line) for p in patterns) for line in said)
    aborted = run.returncode == -signal.SIGABRT
    survived = run.returncode == 0 and "survived" in run.stdout

    if options.mode == "abort":
        if len(said) != 1 or not as_expected:
            return fail("the report is not the one line expected", run)
        return 0 if aborted else fail("the process did not abort", run)
    if options.mode == "report":
        if not as_expected:
            return fail("the report is not as expected", run)
        return 0 if survived else fail("the program did not go on", run)

    if said:
        reported_kinds = r"sutler: \w+\(\): (double free|invalid pointer|corrupted free list) .*"
        if not all(re.fullmatch(reported_kinds, line) for line in said):
            return fail("an unknown report", run)
        print("reported:", said[0])
        return 0 if aborted else fail("a report without abort", run)
    if survived:
        print("survived without a report (best effort)")
        return 0
    if "doubled" in run.stdout and run.returncode == 0 and options.known_limit:
        print("doubled without a report (known limit of the default build)")
        return 0
    if options.mode == "any" and run.returncode in (-signal.SIGSEGV, -signal.SIGBUS):
        print("died by signal", -run.returncode)
        return 0
    return fail("neither reported nor survived", run)


if __name__ == "__main__":
    sys.exit(main())
