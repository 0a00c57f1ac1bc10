# SPDX-License-Identifier: MIT
"""What a handful of noisy runs can honestly say.

Runs come in rounds: in each round every allocator runs once, so a round shares its disturbances.  The ratio of medians
is therefore resampled by whole rounds.  A plain percentile bootstrap is too narrow for five or ten runs; the interval
is widened by Hesterberg's expanded percentiles, which restore Student's t for small samples.  With few rounds that is
everything that was seen, and no resampling reaches further: three values leave the true median outside their range one
time in four.  Below six rounds the interval therefore also takes in Student's t interval of the logarithms, which does.

Rounds of one run of the tool follow each other within minutes.  What changes between one run and the next (the host of
a virtual machine, the layout of memory) shifts all rounds alike and no interval computed inside a run can show it; a
ratio of two allocators keeps little of it, an absolute time all of it.  `Interval.apart` measures it from two runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Sequence

import numpy as np

RESAMPLES = 10_000
LEAST_ROUNDS = 5  # with fewer, all rounds fall to the same side by chance too often
FEW_ROUNDS = 6  # with fewer, the range of what was seen covers less than an interval promises


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % interval; `rounds` is how many rounds it rests on."""

    value: float
    low: float
    high: float
    rounds: int

    def excludes(self, what: float) -> bool:
        """Whether the interval leaves `what` out, which fewer than 5 rounds cannot show."""
        return self.rounds >= LEAST_ROUNDS and (self.low > what or self.high < what)

    def agrees(self, other: "Interval") -> bool:
        """Whether two intervals of the same figure overlap."""
        return self.low <= other.high and other.low <= self.high

    def apart(self, other: "Interval") -> float:
        """How far the other value lies from this one, as a share of this one."""
        return other.value / self.value - 1 if self.value else math.nan


@lru_cache
def student_t_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's t, by integrating its density: no statistics package is worth a dependency here."""
    if not 0.5 <= probability < 1 or freedom < 1:
        raise ValueError("student_t_quantile: probability in [0.5, 1), freedom >= 1")
    # x / sqrt(freedom) = tan(a) turns the infinite tail into a finite range, with cos(a)^(freedom - 1) as the density.
    angle = np.linspace(0.0, math.pi / 2, 200_001)
    density = np.cos(angle) ** (freedom - 1)
    area = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
    wanted = (probability - 0.5) * 2 * area[-1]
    return float(math.sqrt(freedom) * math.tan(float(np.interp(wanted, area, angle))))


def expanded_tail(rounds: int, confidence: float = 0.95) -> float:
    """The tail probability at which a bootstrap percentile of `rounds` values covers like a t interval."""
    if rounds < 2:
        return 0.0
    t = student_t_quantile(0.5 + confidence / 2, rounds - 1)
    return NormalDist().cdf(-math.sqrt(rounds / (rounds - 1)) * t)


def _student_of_logs(logs: np.ndarray) -> float:  # type: ignore[type-arg]
    """Half the width of the 95 % interval that Student's t gives the mean of a few logarithms."""
    rounds = len(logs)
    return student_t_quantile(0.975, rounds - 1) * float(np.std(logs, ddof=1)) / math.sqrt(rounds)


def ratio_of_medians(ours: Sequence[float], base: Sequence[float], seed: int = 1) -> Interval:
    """median(ours) / median(base) over paired rounds, with its interval."""
    if len(ours) != len(base) or not len(ours):
        raise ValueError("ratio_of_medians: the same number of rounds on both sides, at least one")
    a, b = np.asarray(ours, dtype=float), np.asarray(base, dtype=float)
    rounds = len(a)
    below = float(np.median(b))
    value = float(np.median(a)) / below if below else math.nan
    if rounds == 1 or not below:
        return Interval(value, value, value, rounds)
    picks = np.random.default_rng(seed).integers(0, rounds, size=(RESAMPLES, rounds))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.median(a[picks], axis=1) / np.median(b[picks], axis=1)
    ratios = ratios[np.isfinite(ratios)]
    tail = expanded_tail(rounds)
    low, high = (float(edge) for edge in np.quantile(ratios, [tail, 1 - tail]))
    if rounds < FEW_ROUNDS and (a > 0).all() and (b > 0).all():
        # The seed's luck cannot narrow this one: it is computed, not resampled.
        half = math.exp(_student_of_logs(np.log(a / b)))
        low, high = min(low, value / half), max(high, value * half)
    return Interval(value, low, high, rounds)


def median_interval(values: Sequence[float], seed: int = 1) -> Interval:
    """The median of one list with its interval."""
    return ratio_of_medians(values, [1.0] * len(values), seed)


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers; NaN when there are none."""
    if not values:
        return math.nan
    return math.exp(sum(math.log(value) for value in values) / len(values))


def geometric_mean_interval(rows: Sequence[tuple[Sequence[float], Sequence[float]]], seed: int = 1) -> Interval:
    """The geometric mean, over several programs, of ratio_of_medians; rounds are resampled within each program."""
    if not rows:
        return Interval(math.nan, math.nan, math.nan, 0)
    singles = [ratio_of_medians(ours, base, seed) for ours, base in rows]
    value = geometric_mean([single.value for single in singles])
    rounds = min(single.rounds for single in singles)
    if rounds < 2:
        return Interval(value, value, value, rounds)
    generator = np.random.default_rng(seed)
    logs = np.zeros(RESAMPLES)
    for ours, base in rows:
        a, b = np.asarray(ours, dtype=float), np.asarray(base, dtype=float)
        picks = generator.integers(0, len(a), size=(RESAMPLES, len(a)))
        logs += np.log(np.median(a[picks], axis=1) / np.median(b[picks], axis=1))
    tail = expanded_tail(rounds)
    low, high = (float(edge) for edge in np.exp(np.quantile(logs / len(rows), [tail, 1 - tail])))
    if rounds < FEW_ROUNDS:
        # The programs err independently of each other: their widths add up in squares.
        halves = [_student_of_logs(np.log(np.asarray(ours, dtype=float) / np.asarray(base))) for ours, base in rows]
        half = math.exp(math.sqrt(sum(width * width for width in halves)) / len(rows))
        low, high = min(low, value / half), max(high, value * half)
    return Interval(value, low, high, rounds)
