#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An option value that nobody knows: one warning, then ignored.  A right value: no word."""

import os
import re
import subprocess
import sys

CASES: list[tuple[dict[str, str], str | None]] = [
    ({}, None),
    ({"SUTLER_SYNC": "x"}, r"sutler: SUTLER_SYNC: unknown value 'x' \(rcs or cpu\); ignored"),
    ({"SUTLER_SYNC": ""}, r"sutler: SUTLER_SYNC: unknown value '' \(rcs or cpu\); ignored"),
    ({"SUTLER_SYNC": "rcsx"}, r"sutler: SUTLER_SYNC: unknown value 'rcsx' \(rcs or cpu\); ignored"),
    ({"SUTLER_ON_ERROR": "shrug"}, r"sutler: SUTLER_ON_ERROR: unknown value 'shrug' \(abort or report\); ignored"),
    ({"SUTLER_MANAGER": "perhaps"}, r"sutler: SUTLER_MANAGER: unknown value 'perhaps' \(auto, on or off\); ignored"),
    ({"SUTLER_STATS": "xml"}, r"sutler: SUTLER_STATS: unknown value 'xml' \(.*\); ignored"),
    ({"SUTLER_SYNC": "x" * 5000}, r"sutler: SUTLER_SYNC: unknown value 'x+.*ignored"),
    ({"SUTLER_SINK": "rcs"}, r"sutler: SUTLER_SINK: unknown option; ignored"),
    ({"SUTLER_SYNC": "cpu"}, None),
    ({"SUTLER_SYNC": "thread"}, r"sutler: SUTLER_SYNC: this policy is only in libsutler_policies\.so .*; ignored"),
    ({"SUTLER_ONLINE": "one"}, r"sutler: SUTLER_ONLINE: this policy is only in libsutler_policies\.so .*; ignored"),
    ({"SUTLER_POLICY": "thread"}, None),
    ({"SUTLER_SYNC": "cpu", "SUTLER_ON_ERROR": "report", "SUTLER_MANAGER": "off", "SUTLER_STATS": "0"}, None),
]


def main() -> int:
    library, program = sys.argv[1:3]
    base = {name: value for name, value in os.environ.items() if not name.startswith("SUTLER_")}
    base["LD_PRELOAD"] = library
    failures = 0
    for variables, expected in CASES:
        run = subprocess.run(
            [program], env=base | variables, capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
        said = [line for line in run.stderr.splitlines() if line.startswith("sutler: ")]
        good = run.returncode == 0 and "survived" in run.stdout
        # A wrong value may be warned about by the process itself only: its fork child must stay silent.
        good = good and (said == [] if expected is None else len(said) == 1 and re.fullmatch(expected, said[0]))
        if not good:
            failures += 1
            print(f"FAILED: {variables}: status {run.returncode}, expected {expected!r}, stderr {said!r}")
    print(f"{len(CASES)} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
