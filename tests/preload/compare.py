#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one case twice, without and with the library preloaded, and compares what came out.

A case is a shell script in cases/ that runs real programs on real input and prints what they compute (never times,
addresses or process ids).  It starts in an empty folder.  Comments at its top say what it needs:
  # needs: gawk sort        programs that must be there, else the case is skipped
  # needs-file: /path       a file that must be there, or a pattern of its name
  # oracle: passed          every line of output ends in this word when all is well: the run without the library is
                            then only made when one does not, to tell a failure of the machine's from the library's
Same stdout, same exit status, and no line of the library's on stderr: passed.
"""

import argparse
import difflib
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "sutler"))
from sutler_tool import machine  # noqa: E402

CASES = pathlib.Path(__file__).parent / "cases"


def missing(case: str) -> list[str]:
    lacks = [name for row in re.findall(r"^# needs: (.*)$", case, re.M) for name in row.split() if not shutil.which(name)]
    lacks += [path for path in re.findall(r"^# needs-file: (.*)$", case, re.M) if not glob.glob(path.strip())]
    return lacks


def run(case: pathlib.Path, library: str | None, seconds: float) -> tuple[int, str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "TEST_EXPECT_SUTLER")}
    environment |= {"LC_ALL": "C", "CASE_LIBRARY": library or ""}
    if library is not None:
        environment["LD_PRELOAD"] = library
    with tempfile.TemporaryDirectory(prefix="sutler-case-") as folder:
        environment |= {"CASE_DIRECTORY": str(CASES), "HOME": environment.get("HOME", folder)}
        process = subprocess.Popen(
            ["/bin/sh", "-eu", str(case)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            return -999, output, errors + "\ntimed out"
    return process.returncode, output, errors


def preload_works(library: str) -> bool:
    probe = subprocess.run(
        ["/bin/cat", "/proc/self/maps"], env=dict(os.environ, LD_PRELOAD=library), capture_output=True, text=True, check=False
    )
    return probe.returncode == 0 and os.path.basename(library) in probe.stdout


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--lib", default=os.environ.get("TEST_LIBRARY"))
    parser.add_argument("--seconds", type=float, default=200)
    options = parser.parse_args()
    case = CASES / f"{options.case}.sh"
    text = case.read_text(encoding="utf-8")
    lacks = missing(text)
    if lacks:
        print(f"SKIPPED: {options.case} needs {', '.join(lacks)}")
        return 77
    if os.environ.get("SUTLER_SWEEP") == "on" and machine.filtered():
        print("SKIPPED: under a seccomp filter there is no sweep")
        return 77
    if not preload_works(options.lib):
        print(f"FAILED: {options.lib} is not loaded into a preloaded program")
        return 1
    with_status, with_output, with_errors = run(case, options.lib, options.seconds)
    oracle = re.search(r"^# oracle: (.*)$", text, re.M)
    if oracle and with_status == 0 and with_output and all(r.endswith(oracle[1]) for r in with_output.splitlines()):
        status, output, errors = with_status, with_output, with_errors
    else:
        status, output, errors = run(case, None, options.seconds)
    if status == 77:
        print(f"SKIPPED: {output.strip()}")
        return 77
    if status != 0 or not output:
        print(f"FAILED: the case fails without the library: status {status}\n{output[-2000:]}\n{errors[-4000:]}")
        return 1
    said = [line for line in with_errors.splitlines() if line.startswith("sutler: ") or "cannot be preloaded" in line]
    if with_status == status and with_output == output and not said:
        print(f"{options.case}: {len(output.splitlines())} lines of output, equal")
        return 0
    print(f"FAILED: {options.case}: status {status} without, {with_status} with the library")
    for line in difflib.unified_diff(output.splitlines(), with_output.splitlines(), "without", "with", lineterm="", n=1):
        print(line[:400])
    print("stderr with the library:", *said[:20], with_errors[-4000:], sep="\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
