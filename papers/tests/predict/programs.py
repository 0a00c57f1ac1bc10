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

GNUPLOT = """
set terminal svg
set samples 400
plot sin(x), cos(2*x), tan(x/3), sin(x)*exp(-x*x/20), log(abs(x)+1), x**0.3
set isosamples 30
splot sin(sqrt(x*x+y*y))/sqrt(x*x+y*y+1)
set polar
plot 3*sin(4*t), 1-sin(t)
"""
OCTAVE = """
x = linspace(0, 10, 500); s = 0;
for k = 1:20, s = s + sum(sin(k * x)) + sum(cos(x * k)) + sum(exp(-x * k)) + sum(log(1 + x * k)); end
A = zeros(40); for i = 1:40, for j = 1:40, A(i, j) = sin(pi * i * j / 41) ^ 1.5; end, end
printf("%.17g %.17g\\n", s, abs(sum(A(:))));
"""
NUMPY = """
import math, numpy
x = numpy.linspace(0, 30, 2000)
for function in (numpy.sin, numpy.cos, numpy.tan, numpy.exp, numpy.log1p):
    print(repr(float(function(x).sum())), repr(float(function(x.astype(numpy.float32)).sum())))
print(repr(sum(math.sin(i % 50) + math.pow(i % 7, 0.5) + math.log(1 + i % 9) for i in range(20000))))
for bad in (lambda: math.exp(1e9), lambda: math.log(-1), lambda: math.pow(0.0, -1)):
    try:
        bad()
    except (OverflowError, ValueError) as error:
        print(error)
"""
PROGRAMS = {
    "gnuplot": (["gnuplot"], GNUPLOT, "gnuplot"),
    "octave": (["octave-cli", "--norc", "--no-history", "--eval", OCTAVE], "", "octave-cli"),
    "numpy": (["/usr/bin/python3", "-c", NUMPY], "", "/usr/bin/python3"),
}


def run(command: list[str], text: str, **settings: str) -> tuple[int, str, str]:
    done = subprocess.run(command, input=text, env={**os.environ, **settings}, capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout, done.stderr


def main() -> int:
    name, library = sys.argv[1:]
    command, text, needs = PROGRAMS[name]
    if shutil.which(needs) is None or (name == "numpy" and run([needs, "-c", "import numpy"], "")[0] != 0):
        print(f"SKIPPED: no {name} here")
        return 77
    code, plain, complaint = run(command, text)
    if code != 0 or len(plain) < 20:
        print(f"SKIPPED: {name} does not work here by itself: {complaint[-300:]}")
        return 77
    for mode in ("auto", "force"):
        settings = {"SUTLER_PREDICT": mode, "SUTLER_PREDICT_REPORT": "1", "SUTLER_PREDICT_THRESHOLD": "65"}
        code, output, said = run(command, text, LD_PRELOAD=library, **settings)
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
