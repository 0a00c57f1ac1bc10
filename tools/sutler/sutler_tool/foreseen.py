# SPDX-License-Identifier: MIT
"""`python -m sutler_tool.foreseen FUNCTION -- PROGRAM`: how well a program's calls of one of libm's functions can be
foreseen, in one key=value line for `bench`.

The program runs once with its calls recorded, and the log is replayed as `sutler predict` does.  Printed, over all threads
and processes: calls, ns (of one), and the percentage of calls whose arguments each method foresees, last, stride, context_1
to context_6, and best.  FUNCTION is one of libm's, or `all`: those recorded, in the order of their calls.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from . import predict
from .paths import ToolError

MOST = 1_000_000


def pairs(entries: list[predict.Calls]) -> list[str]:
    """The line's words, of the sequences of one function."""
    calls, replayed = sum(entry.calls for entry in entries), sum(entry.replayed for entry in entries)
    line = ["name=foreseen", f"calls={calls}"]
    timed = [entry for entry in entries if entry.cost_ns is not None]
    if timed:
        line.append(f"ns={sum(e.cost_ns * e.calls for e in timed if e.cost_ns) / sum(e.calls for e in timed):.1f}")
    for method in predict.METHODS:
        right = sum(entry.right[method] for entry in entries)
        line.append(f"{method.replace('order', 'context_')}={100 * right / replayed:.2f}")
    return line


def main(words: list[str]) -> int:
    function, command = words[0], words[words.index("--") + 1 :]
    with tempfile.TemporaryDirectory(prefix="sutler-") as folder:
        try:
            run, logs = predict.record(command, Path(folder), MOST)
            entries = [entry for entry in predict.replay(logs, MOST) if entry.function == function]
        except ToolError as problem:
            print(problem, file=sys.stderr)
            return 1
    if not run.ok or not any(entry.replayed for entry in entries):
        print(f"no call of {function} was recorded: {run.status} {run.detail} {run.stderr_tail.strip()[-300:]}", file=sys.stderr)
        return 1
    print(*pairs(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
