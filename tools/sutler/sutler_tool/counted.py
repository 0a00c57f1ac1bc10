# SPDX-License-Identifier: MIT
"""`python -m sutler_tool.counted -- PROGRAM`: runs it under callgrind and prints one key=value line for `bench`.

Instructions per call of malloc and of free, everything they call included, and the percentage of all instructions they
are: what the thesis's Table 7.2 shows.  Instructions of an engine's own thread are in the total, not in a call; per malloc
of the program they are `manager_instructions`, and all of the program's own thread `thread_instructions`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from . import callgrind


def main(words: list[str]) -> int:
    if words[:1] == ["--"]:
        words = words[1:]
    with tempfile.TemporaryDirectory(prefix="sutler-") as folder:
        command = ["valgrind", "--tool=callgrind", "--quiet", "--separate-threads=yes", f"--callgrind-out-file={folder}/out.%p", *words]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        files = list(Path(folder).glob("out.*"))
        cost = callgrind.read(files)
        first = callgrind.read(path for path in files if path.name.endswith("-01")).total
    if done.returncode != 0 or not cost.total:
        print(f"the program failed under callgrind: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return done.returncode or 1
    pairs = ["name=counted", f"total={cost.total}"]
    for family in ("malloc", "free"):
        if cost.calls[family]:
            pairs.append(f"{family}_instructions={cost.instructions[family] / cost.calls[family]:.1f}")
            pairs.append(f"{family}_percent={cost.instructions[family] / cost.total * 100:.2f}")
    if cost.calls["malloc"]:
        pairs.append(f"thread_instructions={first / cost.calls['malloc']:.1f}")
        pairs.append(f"manager_instructions={(cost.total - first) / cost.calls['malloc']:.1f}")
    print(*pairs, f"share_percent={cost.share * 100:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
