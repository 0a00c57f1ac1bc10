# SPDX-License-Identifier: MIT
"""The progress line of a verb whose output is a file."""

import io

from rich.console import Console
from sutler_tool import progress


def lines_of(times, is_terminal=False):
    now = [0.0]
    out = io.StringIO()
    console = Console(file=out, force_terminal=is_terminal)
    line = progress.ProgressLine(console=console, disable=True, get_time=lambda: now[0])
    task = line.add_task("first", total=len(times))
    for n, now[0] in enumerate(times):
        line.update(task, completed=n + 1)
    return out.getvalue().splitlines()


def test_a_file_gets_a_line_every_half_minute():
    assert lines_of([100, 101, 129, 131, 140, 162]) == [
        "sutler: first, 1 of 6 done",
        "sutler: first, 4 of 6 done",
        "sutler: first, 6 of 6 done",
    ]


def test_a_terminal_gets_none_of_them():
    assert lines_of([100, 200], is_terminal=True) == []
