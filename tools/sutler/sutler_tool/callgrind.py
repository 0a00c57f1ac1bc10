# SPDX-License-Identifier: MIT
"""Instructions inside the allocator, out of Valgrind's callgrind.

A callgrind file lists, for each function, its calls with the inclusive cost of each.  The allocator's share is the sum
over calls that enter it from outside: `operator new` calling malloc counts once, and so does an engine's malloc that calls
the malloc of the library below it; what an engine's own thread allocates is nobody's call.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable

ALLOCATOR = {
    "malloc": "malloc",
    "calloc": "calloc",
    "realloc": "realloc",
    "reallocarray": "realloc",
    "free": "free",
    "cfree": "free",
    "memalign": "aligned",
    "aligned_alloc": "aligned",
    "posix_memalign": "aligned",
    "valloc": "aligned",
    "_Znwm": "malloc",
    "_Znam": "malloc",
    "_ZdlPv": "free",
    "_ZdaPv": "free",
    "_ZdlPvm": "free",
    "_ZdaPvm": "free",
}
ENGINE = re.compile(r"/libsutler_[a-z_]+\.so$")
NAME = re.compile(r"\((\d+)\)(?: (.*))?")


@dataclass
class Cost:
    """Instructions of a program, and of those the ones inside the allocator by the function that was entered."""

    total: int = 0
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    instructions: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def inside(self) -> int:
        return sum(self.instructions.values())

    @property
    def share(self) -> float:
        return self.inside / self.total if self.total else 0.0

    @property
    def bound(self) -> float:
        """Amdahl's: how many times faster the program could be if malloc and free cost nothing."""
        return 1 / (1 - self.share) if self.share < 1 else float("inf")


def family(function: str) -> str:
    """Which of malloc, calloc, realloc, free, aligned a function is; an empty string when none."""
    plain = re.sub(r"'\d+$", "", function).split("@", 1)[0]
    if plain.startswith("operator new"):
        return "malloc"
    if plain.startswith("operator delete"):
        return "free"
    return ALLOCATOR.get(re.sub(r"^(__libc_|__GI___libc_|__GI___|__GI_)", "", plain), "")


def read(paths: Iterable[Path]) -> Cost:
    """Adds up the files of all processes."""
    cost = Cost()
    for path in paths:
        _read_one(path, cost)
    return cost


def events(paths: Iterable[Path]) -> dict[str, int]:
    """The sums over all files of what was counted or simulated, by callgrind's names (Ir, Dr, D1mr, ...)."""
    sums: dict[str, int] = defaultdict(int)
    for path in paths:
        names: list[str] = []
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith("events:"):
                names = line.split()[1:]
            elif line.startswith("totals:"):
                for name, word in zip(names, line.split()[1:]):
                    sums[name] += int(word)
    return sums


def _read_one(path: Path, cost: Cost) -> None:
    names: dict[str, str] = {}
    objects: dict[str, str] = {}
    function, callee, pending, inside = "", "", 0, False

    def name_of(text: str, known: dict[str, str] = names) -> str:
        match = NAME.match(text)
        if not match:
            return text
        if match.group(2):
            known[match.group(1)] = match.group(2)
        return known.get(match.group(1), text)

    with path.open(errors="replace") as stream:
        for line in stream:
            if line.startswith("fn="):
                function = name_of(line[3:].strip())
            elif line.startswith("ob="):
                inside = bool(ENGINE.search(name_of(line[3:].strip(), objects)))
            elif line.startswith("cob="):
                name_of(line[4:].strip(), objects)
            elif line.startswith("cfn="):
                callee = name_of(line[4:].strip())
            elif line.startswith("calls="):
                pending = int(line[6:].split()[0])
            elif line.startswith(("summary:", "totals:")):
                words = line.split(":", 1)[1].split()
                if line.startswith("totals:") and words:
                    cost.total += int(words[0])
            elif line[:1] in "0123456789+-*" and pending:
                words = line.split()
                entered = family(callee)
                if entered and not inside and not family(function) and len(words) > 1:
                    cost.calls[entered] += pending
                    cost.instructions[entered] += int(words[1])
                pending = 0
