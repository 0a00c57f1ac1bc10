#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real programs print the same with the predictor before libm as without it: left to itself, and forced (every call goes
through the rings).  programs.py NAME LIBRARY"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "programs" / "data"
PROGRAMS = {
    "gnuplot": ["gnuplot", "-e", "points=400", str(DATA / "curves.gnuplot")],
    "octave": ["octave-cli", "--norc", "--no-history", str(DATA / "sweeps.m"), "1"],
    "numpy": ["/usr/bin/python3", str(DATA / "arrays.py"), "1"],
    "fft": ["/usr/bin/python3", str(DATA / "fft.py"), "4"],
    "sox": "sox -D -n -r 8000 -t dat - synth 1 sine 200-2000 synth 1 sine amod 3 tremolo 5 flanger bandpass 800 200 sinc 300-3k".split(),
}


def run(command: list[str], **settings: str) -> tuple[int, str, str]:
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout, done.stderr


def main() -> int:
    name, library = sys.argv[1:]
    command = PROGRAMS[name]
    if shutil.which(command[0]) is None or (name == "numpy" and run([command[0], "-c", "import numpy"])[0] != 0):
        print(f"SKIPPED: no {name} here")
        return 77
    code, plain, complaint = run(command)
    if code != 0 or len(plain) < 20:
        print(f"SKIPPED: {name} does not work here by itself: {complaint[-300:]}")
        return 77
    for mode in ("auto", "force"):
        settings = {"SUTLER_PREDICT": mode, "SUTLER_PREDICT_REPORT": "1", "SUTLER_PREDICT_THRESHOLD": "65"}
        code, output, said = run(command, LD_PRELOAD=library, **settings)
        calls = sum(map(int, re.findall(r"sutler-predict: .* calls=(\d+)", said)))
        hits = sum(map(int, re.findall(r"sutler-predict: .* hits=(\d+)", said)))
        print(f"{mode}: {calls} calls seen, {hits} answered ahead")
        if code != 0 or output != plain:
            print(f"FAILED: {name} prints something else with the predictor ({mode}), or ends with {code}: {said[-500:]}")
            return 1
        if calls == 0 or (mode == "force" and calls < 1000):
            print("FAILED: the predictor saw none, or too few, of its calls")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
