# SPDX-License-Identifier: MIT
"""`python -m sutler_tool.counted [cache|rate] -- PROGRAM`: runs it under callgrind and prints one key=value line for `bench`.

Always: instructions per call of malloc and of free, everything they call included (malloc_instructions,
free_instructions), the percentage of all instructions that each function of the family is (malloc_percent, ...), of all
together (share_percent), and Amdahl's bound of what a faster one can gain.  Instructions of an engine's own thread are in
the total, not in a call; per malloc of the program they are `manager_instructions`, and all of the program's own thread
`thread_instructions`.  Children count like their parent.

cache: the caches of the thesis's Core i7 are simulated (32 KiB and 8 MiB of 64-byte lines), and the cycles computed by its
formula (table A.5): I + 4 Dr + 4 Dw + 10 L1 + 40 (L1 - L3) / 2 + 50 L3, where L1 and L3 are misses.  cpi is their quotient.

rate: the program runs once more without callgrind, and calls_per_s of the malloc family and the time between two of them,
between_ns, are told.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import callgrind

CORE_I7 = ["--cache-sim=yes", "--I1=32768,4,64", "--D1=32768,8,64", "--LL=8388608,16,64"]


def counts(cost: callgrind.Cost, first: int) -> list[str]:
    """`first`: instructions of the first thread."""
    pairs = [f"total={cost.total}"]
    for family in ("malloc", "realloc", "calloc", "free"):
        if cost.calls[family]:
            pairs.append(f"{family}_instructions={cost.instructions[family] / cost.calls[family]:.1f}")
        pairs.append(f"{family}_percent={cost.instructions[family] / cost.total * 100:.3f}")
        pairs.append(f"{family}_calls={cost.calls[family]}")
    if cost.calls["malloc"]:
        pairs.append(f"thread_instructions={first / cost.calls['malloc']:.1f}")
        pairs.append(f"manager_instructions={(cost.total - first) / cost.calls['malloc']:.1f}")
    return pairs + [f"share_percent={cost.share * 100:.3f}", f"bound={cost.bound:.4f}", f"calls={sum(cost.calls.values())}"]


def simulated(events: dict[str, int]) -> list[str]:
    """What the cache simulation says of all threads together, which share one simulated hierarchy."""
    l1 = events["I1mr"] + events["D1mr"] + events["D1mw"]
    l3 = events["ILmr"] + events["DLmr"] + events["DLmw"]
    cycles = events["Ir"] + 4 * (events["Dr"] + events["Dw"]) + 10 * l1 + 40 * (l1 - l3) / 2 + 50 * l3
    return [
        *(f"{name}={value}" for name, value in (("reads", events["Dr"]), ("writes", events["Dw"]), ("l1_misses", l1), ("l3_misses", l3))),
        f"cycles={cycles:.0f}",
        f"cpi={cycles / events['Ir']:.4f}",
    ]


def rate(words: list[str], calls: int) -> list[str]:
    began = time.monotonic()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    return [f"calls_per_s={calls / seconds:.0f}", f"between_ns={seconds / calls * 1e9:.2f}"] if calls else []


def main(words: list[str]) -> int:
    at = words.index("--") if "--" in words else -1
    how, program = " ".join(words[: max(at, 0)]), words[at + 1 :]
    with tempfile.TemporaryDirectory(prefix="sutler-") as folder:
        command = ["valgrind", "--tool=callgrind", "--quiet", "--separate-threads=yes", "--trace-children=yes"]
        command += [*(CORE_I7 if how == "cache" else []), f"--callgrind-out-file={folder}/out.%p", *program]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        files = list(Path(folder).glob("out.*"))
        cost = callgrind.read(files)
        first = callgrind.read(path for path in files if path.name.endswith("-01")).total
        events = callgrind.events(files)
    if done.returncode != 0 or not cost.total:
        print(f"the program failed under callgrind: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return done.returncode or 1
    pairs = ["name=counted", *counts(cost, first)]
    pairs += simulated(events) if how == "cache" else rate(program, sum(cost.calls.values())) if how == "rate" else []
    print(*pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
