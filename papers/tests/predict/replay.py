#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What predict_replay says of a log must be what a plain replay finds: this one, written from the words in
papers/predict/context.h and papers/predict/predictors.h, with lists and dictionaries, sharing no line with the C.

    replay.py REPLAY LOG_LIBRARY PROGRAM [ARGS...]     runs PROGRAM under the log library, replays both ways, compares
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

FUNCTIONS = "sin cos tan exp log pow sincos sinf cosf tanf expf logf powf sincosf".split()
ROWS, COLUMNS, MASK = 512, 32, (1 << 64) - 1


class Context:
    """Figure 11.1."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.rows: list[list[tuple]] = []
        self.ages: list[int] = []  # rows, the oldest first
        self.index: dict[tuple, tuple[int, int]] = {}  # the last values -> (row, how many stand before)
        self.entries: dict[int, set[tuple]] = {}  # row -> the keys of the index that lead to it
        self.doubted: dict[int, set[int]] = {}  # row -> how many stand before the doubted place
        self.last: list[tuple] = []
        self.place: tuple[int, int] | None = None
        self.guess: tuple | None = None
        self.right = 0
        self.random = 0x9E3779B97F4A7C15

    def endings(self) -> list[tuple]:
        return [tuple(self.last[-n:]) for n in range(1, len(self.last) + 1)]

    def lead(self, key: tuple, place: tuple[int, int]) -> None:
        old = self.index.get(key)
        if old is not None:
            self.entries[old[0]].discard(key)
        self.index[key] = place
        self.entries[place[0]].add(key)

    def new_row(self) -> int:
        if len(self.rows) < ROWS:
            row = len(self.rows)
            self.rows.append([])
        else:
            row = self.ages.pop(0)
            for key in self.entries[row]:
                del self.index[key]
            self.rows[row] = []
        self.entries[row], self.doubted[row] = set(), set()
        self.ages.append(row)
        return row

    def add(self, value: tuple) -> tuple[int, int]:
        row = self.new_row()
        self.rows[row] = list(self.last)
        for key in self.endings():
            self.lead(key, (row, len(self.last)))
        self.rows[row].append(value)
        return row, len(self.rows[row])

    def correct(self, value: tuple) -> tuple[int, int] | None:
        if self.place is None:
            return self.add(value)
        row, before = self.place
        if before == len(self.rows[row]):
            if before == COLUMNS:
                return self.add(value)
            self.rows[row].append(value)
            return row, before + 1
        if before in self.doubted[row]:
            self.doubted[row].discard(before)
            return self.add(value)
        self.doubted[row].add(before)
        return None

    def learn(self, value: tuple) -> None:
        after = None
        if self.guess == value:
            self.right += 1
            self.doubted[self.place[0]].discard(self.place[1])
        else:
            after = self.correct(value)
        self.last = (self.last + [value])[-self.order :]
        if after is not None:
            row, before = after
            for key in self.endings():
                if key not in self.index and tuple(self.rows[row][max(0, before - len(key)) : before]) == key:
                    self.lead(key, after)
        self.match()

    def match(self) -> None:
        places = [self.index[key] for key in reversed(self.endings()) if key in self.index]
        going_on = [place for place in places if place[1] < len(self.rows[place[0]])]
        self.place = (going_on or places or [None])[0]
        self.guess = None
        if self.place is None:
            return
        row, before = self.place
        if before < len(self.rows[row]):
            self.guess = self.rows[row][before]
            return
        counts = Counter(self.rows[row])
        most = max(counts.values())
        best = [value for value, count in counts.items() if count == most]
        self.guess = best[self.draw() % len(best) if len(best) > 1 else 0]

    def draw(self) -> int:
        x = self.random
        x ^= x << 13 & MASK
        x ^= x >> 7
        x ^= x << 17 & MASK
        self.random = x
        return x


def number(form: str, bits: int) -> float:
    return struct.unpack(f"<{form}", struct.pack("<Q" if form == "d" else "<I", bits))[0]


def bits_of(form: str, value: float) -> int:
    return struct.unpack("<Q" if form == "d" else "<I", struct.pack(f"<{form}", value))[0]


def finite(value: float) -> bool:
    return value - value == 0


class Stride:
    """The last value plus a constant, which is taken anew when it was wrong.  Python's numbers are doubles; the sum or the
    difference of two floats, rounded to double and then to float, is what a float unit gives."""

    def __init__(self, form: str, numbers: int) -> None:
        self.form, self.numbers = form, numbers
        self.last: tuple | None = None
        self.steps: list[float] = []

    def guess(self) -> tuple | None:
        if self.last is None:
            return None
        words = list(self.last)
        for i, step in enumerate(self.steps):
            if bits_of(self.form, step) != 0:
                words[i] = self.rounded(number(self.form, words[i]) + step)
        return tuple(words)

    def rounded(self, value: float) -> int:
        try:
            return bits_of(self.form, value)
        except OverflowError:
            return bits_of(self.form, float("inf") if value > 0 else float("-inf"))

    def learn(self, value: tuple) -> None:
        if self.last is not None and self.guess() != value:
            pairs = zip(value[: self.numbers], self.last[: self.numbers])
            steps = [number(self.form, self.rounded(number(self.form, to) - number(self.form, of))) for to, of in pairs]
            self.steps = [step if finite(step) else 0.0 for step in steps]
        self.last = value


def replay(values: list[tuple], form: str, numbers: int) -> dict[str, int]:
    """How many values each method foresees."""
    contexts = {order: Context(order) for order in range(1, 7)}
    stride = Stride(form, numbers)
    right, scores = Counter(), {"last": 0, "stride": 0, "context": 0}
    for value in values:
        foreseen = {
            "last": stride.last == value,
            "stride": stride.guess() == value,
            "context": contexts[3].guess == value,
        }
        right["best"] += foreseen[max(scores, key=lambda name: scores[name])]  # of equals the first
        for name, was in foreseen.items():
            right[name] += was
            scores[name] += (65535 - scores[name]) // 8 if was else -(scores[name] // 8)
        stride.learn(value)
        for context in contexts.values():
            context.learn(value)
    result = {"last": right["last"], "stride": right["stride"], "best": right["best"]}
    return {**result, **{f"order{order}": context.right for order, context in contexts.items()}}


def read(path: Path) -> list[tuple]:
    content = path.read_bytes()
    assert content[:8] == b"SUTLARG1"
    records = []
    for at in range(4096, len(content) - 23, 24):
        record = struct.unpack_from("<IIQQ", content, at)
        if record[0] == 0:
            break
        records.append(record)
    return records


def sequences(records: list[tuple]) -> dict[str, tuple[list[tuple], str, int]]:
    """For each function, and for all together: the values, the form of its numbers, how many of them are numbers."""
    found = {"all": ([(r[0], r[2], r[3], r[1]) for r in records], "d", 0)}
    for i, name in enumerate(FUNCTIONS):
        numbers = 2 if name.startswith("pow") else 1
        values = [(*r[2 : 2 + numbers], r[1]) for r in records if r[0] == i + 1]
        if values:
            found[name] = (values, "f" if name.endswith("f") else "d", numbers)
    return found


def main() -> int:
    tool, library, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_PRELOAD=library, SUTLER_PREDICT_LOG=f"{folder}/log")
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        logs = sorted(Path(folder).glob("log.*"))
        output = subprocess.run([tool, *map(str, logs)], capture_output=True, text=True, check=True).stdout
        plain = {
            (path.name.split(".")[-1], name): replay(*what)
            for path in logs
            for name, what in sequences(read(path)).items()
        }
    lines = [dict(word.split("=", 1) for word in line.split()) for line in output.splitlines()]
    told = {(line["thread"], line["function"]): line for line in lines}
    wrong = set(told) ^ set(plain)
    for key, counts in plain.items():
        wrong |= {(*key, name, told[key][name], count) for name, count in counts.items() if int(told[key][name]) != count}
    for item in sorted(wrong, key=str):
        print("differs:", *item)
    print(f"{len(plain)} sequences, {sum(int(line['replayed']) for line in lines)} values")
    foreseen = sum(counts["best"] for counts in plain.values())
    if not plain or foreseen == 0:
        print("FAILED: nothing was foreseen, so nothing was compared")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
