# SPDX-License-Identifier: MIT
"""Interleaving: order, repeats of disturbed runs, and what happens to an allocator that does not do the work."""

from __future__ import annotations

from collections import Counter

import pytest
from sutler_tool import rounds
from sutler_tool.libraries import GLIBC, Library
from sutler_tool.measure import Limits, Run

A, B, C = GLIBC, Library("b", ("/b.so",)), Library("c", ("/c.so",))
JOB = rounds.Job("job", ("/bin/true",))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch):
    """Replaces the launcher by a script of results: script(library, count) -> Run."""
    order: list[str] = []

    def install(script):
        counts: Counter[str] = Counter()

        def run_once(command, library, limits, **more):
            counts[library.name] += 1
            order.append(library.name)
            return script(library.name, counts[library.name], more)

        monkeypatch.setattr(rounds, "run_once", run_once)
        return order

    return install


def test_every_library_takes_every_place_equally_often() -> None:
    places = [Counter() for _ in range(3)]
    for turn in range(12):
        for place, library in enumerate(rounds.rotated([A, B, C], turn)):
            places[place][library.name] += 1
    assert all(count == 4 for place in places for count in place.values())


def test_rounds_are_interleaved(fake) -> None:
    order = fake(lambda name, count, more: Run(name, "ok", wall_s=1))
    kept = rounds.run_rounds(JOB, [A, B, C], 3, Limits())
    assert [sorted(order[i : i + 3]) for i in (0, 3, 6)] == [["b", "c", "glibc"]] * 3
    assert len(kept) == 9 and {run.round for run in kept} == {0, 1, 2}


def test_disturbed_runs_are_repeated_and_recorded(fake) -> None:
    def script(name, count, more):
        return Run(name, "ok", wall_s=1.0, foreign_s=0.9 if name == "b" and count == 1 else 0.0)

    fake(script)
    recorded: list[Run] = []
    kept = rounds.run_rounds(JOB, [A, B], 1, Limits(), record=lambda run, library: recorded.append(run))
    assert len(recorded) == 3 and len(kept) == 2
    assert not any(run.disturbed for run in kept)


def test_repeats_end_and_the_least_disturbed_counts(fake) -> None:
    fake(lambda name, count, more: Run(name, "ok", wall_s=float(count), foreign_s=(0.0, 0.9, 0.5, 0.7)[count]))
    kept = rounds.run_rounds(JOB, [A], 1, Limits(), repeats=2)
    assert [run.foreign_s for run in kept] == [0.5]


def test_a_crashing_peer_is_tried_twice_and_left_alone(fake) -> None:
    order = fake(lambda name, count, more: Run(name, "crashed" if name == "b" else "ok", detail="SIGSEGV"))
    kept = rounds.run_rounds(JOB, [A, B], 5, Limits())
    assert Counter(order) == {"glibc": 5, "b": 2}
    assert sum(not run.ok for run in kept) == 2


def test_a_timeout_is_not_waited_for_again(fake) -> None:
    order = fake(lambda name, count, more: Run(name, "timeout" if name == "b" else "ok"))
    rounds.run_rounds(JOB, [A, B], 5, Limits())
    assert Counter(order)["b"] == 1


def test_the_programs_own_exit_code_is_learned_from_glibc(fake) -> None:
    seen = []

    def script(name, count, more):
        seen.append((name, more["expected_code"]))
        return Run(name, "ok" if more["expected_code"] == 3 else "failed", exit_code=3)

    fake(script)
    kept = rounds.run_rounds(JOB, [B, A], 2, Limits())
    assert seen[0] == ("glibc", 0)
    assert all(run.ok for run in kept)


def test_only_rounds_where_both_worked_are_paired() -> None:
    runs = [
        Run("glibc", "ok", wall_s=1, round=0),
        Run("b", "ok", wall_s=2, round=0),
        Run("glibc", "ok", wall_s=3, round=1),
        Run("b", "crashed", wall_s=0.1, round=1),
        Run("glibc", "ok", wall_s=5, round=2),
        Run("b", "ok", wall_s=6, round=2),
    ]
    assert rounds.paired(runs, "b", "glibc", lambda run: run.wall_s) == ([2, 6], [1, 5])
