#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a test program under the shim with one fault and expects it to fail (with fault `none`: to pass)."""

import argparse
import os
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    environment = dict(os.environ, LD_PRELOAD=options.shim, SHIM_FAULT=options.fault, TEST_SEED="12345")
    if options.fault == "realloc":
        environment["SHIM_AFTER"] = "5"  # start-up reallocs nothing
    environment.pop("TEST_EXPECT_SUTLER", None)
    run = subprocess.run(
        options.command, env=environment, capture_output=True, text=True, errors="replace", timeout=110, check=False
    )
    print(run.stdout[-1500:], run.stderr[-1500:])
    if run.returncode == 77:
        print("SKIPPED: the program skips here")
        return 77
    if options.fault == "none":
        return 0 if run.returncode == 0 else 1
    if run.returncode == 0:
        print(f"FAILED: the program does not notice the fault '{options.fault}'")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
