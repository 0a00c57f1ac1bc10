#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs papers/tests/engines/bugs under an engine with its checking layer in each of its ways, and compares what comes of it.

A row: the bug, SUTLER_CHECKS, SUTLER_CHECKS_OPTIONS, how it must end, and what stderr must say."""

import argparse
import os
import signal
import subprocess
import sys

DOUBLE = "sutler: free(): double free 0x"
INVALID = "sutler: free(): invalid pointer 0x"

INLINE = [
    ("none", "inline", "", "ends", ""),
    ("double_free", "inline", "", "aborts", DOUBLE),
    ("double_free", "inline", "a", "ends", DOUBLE),
    ("wild", "inline", "", "aborts", INVALID),
    ("wild", "inline", "a", "ends", INVALID),
    ("interior", "inline", "", "aborts", INVALID),
    ("realloc_wild", "inline", "", "aborts", "sutler: realloc(): invalid pointer 0x"),
    ("zeros", "inline", "", "ends", ""),
    ("junk", "inline", "z", "ends", ""),
    ("none", "sometimes", "", "ends", "sutler: SUTLER_CHECKS: unknown value 'sometimes'"),
    ("none", "inline", "q", "ends", "sutler: SUTLER_CHECKS_OPTIONS: unknown letter 'q'"),
]
# The server comes to it later, so the program goes on meanwhile.
OFFLOADED = [
    ("none", "offloaded", "", "ends", ""),
    ("double_free", "offloaded", "", "aborts", DOUBLE),
    ("double_free", "offloaded", "a", "ends", DOUBLE),
    ("wild", "offloaded", "", "aborts", INVALID),
    ("interior", "offloaded", "", "aborts", INVALID),
    ("zeros", "offloaded", "", "ends", ""),
    ("junk", "offloaded", "z", "ends", ""),
]
ROWS = {
    "direct": INLINE + [("freed_is_junk", "inline", "", "ends", ""), *OFFLOADED],
    "mmt": INLINE + OFFLOADED,
    "pass_through": INLINE + OFFLOADED,
    "locked_bins": INLINE,
    "lock_free_bins": INLINE,
    "rcs_cache": INLINE,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("engine")
    parser.add_argument("library")
    options = parser.parse_args()
    failures = 0
    for bug, mode, letters, ending, message in ROWS[options.engine]:
        environment = dict(os.environ, LD_PRELOAD=options.library, SUTLER_CHECKS=mode, TEST_ENGINE=options.engine)
        if letters:
            environment["SUTLER_CHECKS_OPTIONS"] = letters
        drain = ["--drain"] if mode == "offloaded" else []
        done = subprocess.run([options.program, bug, *drain], env=environment, capture_output=True, text=True, check=False,
                              timeout=120)
        said = [line for line in done.stderr.splitlines() if line.startswith("sutler: ")]
        wrong = []
        if ending == "ends" and (done.returncode != 0 or "survived" not in done.stdout):
            wrong.append(f"status {done.returncode}, should end well")
        if ending == "aborts" and done.returncode != -signal.SIGABRT:
            wrong.append(f"status {done.returncode}, should abort")
        if message and not any(line.startswith(message) for line in said):
            wrong.append(f"does not say '{message}...'")
        if not message and said:
            wrong.append("says something")
        if wrong:
            failures += 1
            print(f"FAILED: {bug} with SUTLER_CHECKS={mode} {letters}: {'; '.join(wrong)}\n{done.stdout}{done.stderr}")
    print(f"{options.engine}: {len(ROWS[options.engine]) - failures} of {len(ROWS[options.engine])} as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
