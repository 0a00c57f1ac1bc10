# SPDX-License-Identifier: MIT
"""Statistics on data whose answer is known."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from sutler_tool import stats


@pytest.mark.parametrize(
    ("probability", "freedom", "quantile"),
    [
        (0.975, 1, 12.7062),
        (0.975, 4, 2.7764),
        (0.975, 9, 2.2622),
        (0.975, 29, 2.0452),
        (0.95, 10, 1.8125),
        (0.5, 3, 0.0),
    ],
)
def test_student_t_quantiles_are_the_tables(probability: float, freedom: int, quantile: float) -> None:
    assert stats.student_t_quantile(probability, freedom) == pytest.approx(quantile, abs=2e-3)


def test_expanded_tail_is_wider_for_few_rounds() -> None:
    tails = [stats.expanded_tail(rounds) for rounds in (3, 5, 10, 30, 300)]
    assert tails == sorted(tails)
    assert tails[-1] == pytest.approx(0.025, rel=0.05)


def test_ratio_of_medians_of_exact_runs() -> None:
    ratio = stats.ratio_of_medians([0.9] * 6, [1.0] * 6)
    assert (ratio.value, ratio.low, ratio.high) == (0.9, 0.9, 0.9)
    assert ratio.excludes(1.0)


def test_few_rounds_show_nothing() -> None:
    assert not stats.ratio_of_medians([0.5] * 4, [1.0] * 4).excludes(1.0)
    single = stats.ratio_of_medians([0.5], [1.0])
    assert single.value == 0.5 and single.rounds == 1


def test_five_rounds_span_everything_seen() -> None:
    ratio = stats.ratio_of_medians([1.0, 1.1, 1.2, 1.3, 1.4], [1.0] * 5)
    assert ratio.value == pytest.approx(1.2)
    assert ratio.low == pytest.approx(1.0, abs=0.03) and 1.4 <= ratio.high < 1.45


@pytest.mark.parametrize("rounds", [3, 4, 5, 7, 9])
def test_intervals_cover_the_truth_whatever_the_number_of_rounds(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """95 % promised.  The range of three values would miss the true median 25 times in 100."""
    monkeypatch.setattr(stats, "RESAMPLES", 1000)
    seed, experiments = 20130, 400
    print(f"seed {seed}")
    source = random.Random(seed)
    missed = parted = 0
    for _ in range(experiments):
        one, two = (stats.median_interval([source.lognormvariate(0, 0.05) for _ in range(rounds)]) for _ in range(2))
        missed += not one.low <= 1.0 <= one.high
        parted += not one.agrees(two)
    assert missed <= 0.09 * experiments, f"{missed} of {experiments} intervals miss the truth"
    assert parted <= 0.03 * experiments, f"{parted} of {experiments} pairs of equal runs do not agree"


def test_shared_disturbance_of_a_round_cancels() -> None:
    noise = [1, 5, 2, 8, 1, 3, 1, 6, 2, 4]
    ratio = stats.ratio_of_medians([0.8 * n for n in noise], [1.0 * n for n in noise])
    assert ratio.value == pytest.approx(0.8)
    assert ratio.high < 1.3


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError):
        stats.ratio_of_medians([1.0], [1.0, 2.0])


def test_intervals_cover_the_truth() -> None:
    """No difference is called a difference seldom enough: 5 % promised, at most 9 % seen over 300 experiments."""
    source = random.Random(20101)
    wrong = 0
    for _ in range(300):
        ours = [source.lognormvariate(0, 0.05) for _ in range(8)]
        base = [source.lognormvariate(0, 0.05) for _ in range(8)]
        wrong += stats.ratio_of_medians(ours, base).excludes(1.0)
    assert wrong <= 27


def test_geometric_mean() -> None:
    assert stats.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert math.isnan(stats.geometric_mean([]))
    rows = [([0.5] * 6, [1.0] * 6), ([2.0] * 6, [1.0] * 6), ([0.25] * 6, [1.0] * 6)]
    mean = stats.geometric_mean_interval(rows)
    assert mean.value == pytest.approx(0.25 ** (1 / 3)) and mean.rounds == 6
    assert np.isclose(mean.low, mean.value) and np.isclose(mean.high, mean.value)


@pytest.mark.parametrize("programs", [1, 4])
def test_the_mean_over_programs_covers_the_truth_with_three_rounds(
    programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 500)
    source, missed = random.Random(77), 0
    for _ in range(200):
        noise = lambda: [source.lognormvariate(0, 0.05) for _ in range(3)]  # noqa: E731
        mean = stats.geometric_mean_interval([(noise(), noise()) for _ in range(programs)])
        missed += not mean.low <= 1.0 <= mean.high
    assert missed <= 18


def test_agreement_of_intervals() -> None:
    assert stats.Interval(1, 0.9, 1.1, 5).agrees(stats.Interval(1.15, 1.05, 1.2, 5))
    assert not stats.Interval(1, 0.9, 1.1, 5).agrees(stats.Interval(1.3, 1.2, 1.4, 5))
