# SPDX-License-Identifier: MIT
"""The sentence, whichever way it falls."""

from __future__ import annotations

import pytest
from sutler_tool.stats import Interval
from sutler_tool.verdict import Figures, sentence

NONE = Interval(1.0, 0.98, 1.02, 10)
MIB = float(1 << 20)


def figures(wall: Interval = NONE, cpu: Interval = NONE, memory: Interval = NONE, bytes_: float = 50 * MIB) -> Figures:
    return Figures(wall, cpu, memory, bytes_)


def about(value: float, rounds: int = 10) -> Interval:
    return Interval(value, value - 0.01, value + 0.01, rounds)


def test_no_difference() -> None:
    assert sentence(figures()) == "Sutler: no difference can be shown with 10 runs (time -2.0 to +2.0 %)"


def test_faster() -> None:
    text = sentence(figures(wall=about(0.93), memory=about(0.96)))
    assert text == "Sutler: 7.0 % faster (6.0-8.0 %), 4.0 % less memory; worth it"


def test_slower_is_said_as_plainly() -> None:
    assert "7.0 % slower (6.0-8.0 %)" in sentence(figures(wall=about(1.07)))
    assert sentence(figures(wall=about(1.07))).endswith("not worth it")


def test_faster_with_much_more_memory() -> None:
    assert sentence(figures(wall=about(0.9), memory=about(1.4))).endswith("worth it where memory is not short")


def test_faster_on_somebody_elses_core() -> None:
    assert sentence(figures(wall=about(0.95), cpu=about(1.2))).endswith("worth it where a second core is idle")


def test_less_memory_only() -> None:
    text = sentence(figures(memory=about(0.7)))
    assert "no difference in time" in text and "30 % less memory" in text and text.endswith("where memory is short")


def test_an_interval_that_holds_one_is_no_difference() -> None:
    assert "no difference" in sentence(figures(wall=Interval(0.8, 0.5, 1.1, 10)))


def test_too_small_to_matter() -> None:
    assert "no difference" in sentence(figures(wall=Interval(0.995, 0.993, 0.997, 30)))
    tiny = Figures(about(1.2), NONE, NONE, 0.0, wall_change_s=0.0002, cpu_change_s=0.0002, base_wall_s=0.001)
    assert "no difference" in sentence(tiny)
    assert "memory" not in sentence(figures(wall=about(0.9), memory=about(1.3), bytes_=0.2 * MIB))


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_too_few_runs(rounds: int) -> None:
    assert "nothing can be shown" in sentence(figures(wall=about(0.5, rounds)))
