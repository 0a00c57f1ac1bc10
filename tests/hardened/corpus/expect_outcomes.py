#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Commits all bugs of one class under one library; each must have the outcome that expectations.csv says.

expect_outcomes.py PROGRAM CLASS plain|hardened|sweep LIBRARY

The table has a row a case; `sweep` is the hardened library with SUTLER_SWEEP=on.  `without guards` says what comes of it on a kernel that cannot guard pages (before 6.13), if
that is another outcome than `hardened`.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools" / "sutler"))
from sutler_tool import corpus, machine  # noqa: E402


def main() -> int:
    program, wanted, column, library = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    if len(os.sched_getaffinity(0)) < 2 or machine.filtered():
        print("SKIPPED: it takes a manager: two cpus, and no seccomp filter")
        return 77
    if column == "sweep" and not corpus.guards_work():
        print("SKIPPED: it takes a kernel that guards pages")
        return 77
    expected = corpus.expectations(column)
    cases = corpus.cases_of(program)
    if set(cases) != set(expected):
        print(f"FAILED: not both in the program and in the table: {sorted(set(cases) ^ set(expected))}")
        return 1
    chosen = [case for case in cases if case.startswith(f"{wanted}.")]
    seen = corpus.outcomes(program, {"LD_PRELOAD": library, **corpus.SETTINGS[column]}, chosen)
    wrong = [case for case in chosen if seen[case] != expected[case]]
    for case in wrong:
        print(f"FAILED: {case}: expected '{expected[case]}', seen '{seen[case]}': LD_PRELOAD={library} {program} {case}")
    print(f"{len(chosen) - len(wrong)} of {len(chosen)} cases as expected")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
