# SPDX-License-Identifier: MIT
"""`compare` from end to end, on small programs and small libraries."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import printed
from sutler_tool import compare as module
from sutler_tool import peers, rounds
from sutler_tool.compare import Request, compare
from sutler_tool.libraries import Library
from sutler_tool.measure import Run
from sutler_tool.paths import ToolError

PYTHON = (sys.executable, "-I", "-S", "-c")


def request(command, library: Path, **more) -> Request:
    return Request(tuple(command), library=str(library), warm="off", **{"rounds": 4, "timeout_s": 60, **more})


@pytest.fixture(autouse=True)
def no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_captured_input", lambda: None)


def test_a_program_that_ignores_malloc_shows_no_difference(
    console, good_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times are written down here, so that a busy machine cannot decide the outcome."""
    walls = iter([0.1012, 0.1009, 0.1011, 0.1013, 0.1010, 0.1012, 0.1013, 0.1010, 0.1009, 0.1011])
    real = rounds.run_once

    def timed(*arguments, **more):
        return replace(real(*arguments, **more), wall_s=next(walls), user_s=0.001, sys_s=0.001, foreign_s=0.0)

    monkeypatch.setattr(rounds, "run_once", timed)
    assert compare(console, request(("/bin/true",), good_library, rounds=5)) == 0
    assert "Sutler: no difference can be shown with 5 runs" in printed(console)


@pytest.mark.parametrize("at, told", [(12, "stopped after 11 of 40 runs"), (1, "stopped after 0 of 40 runs")])
def test_ctrl_c_shows_what_was_measured(
    console, good_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, told: str
) -> None:
    calls = []

    def run_once(command, library, limits, **more):
        calls.append(library.name)
        if len(calls) == at:
            raise KeyboardInterrupt
        return Run(library.name, "ok", wall_s=1.0 if library.name == "glibc" else 0.9, peak_bytes=1 << 20, output="x")

    monkeypatch.setattr(rounds, "run_once", run_once)
    wanted = request(("/bin/true",), good_library, rounds=20, csv_file=tmp_path / "r.csv")
    assert compare(console, wanted) == 130
    assert told in printed(console)
    assert ("Sutler: 10 % faster" in printed(console)) == (at > 1)
    with (tmp_path / "r.csv").open(newline="") as stream:
        assert len([row for row in csv.DictReader(stream) if row["command"]]) == at - 1


def test_few_runs_get_no_verdict(console, good_library: Path) -> None:
    assert compare(console, request(("/bin/true",), good_library, rounds=2)) == 0
    assert "nothing can be shown with 2 runs" in printed(console)


def test_figures_are_written(console, good_library: Path, tmp_path: Path) -> None:
    wanted = request(
        (*PYTHON, "print(len([str(i) for i in range(30000)]))"),
        good_library,
        same=True,
        json_file=tmp_path / "r.json",
        csv_file=tmp_path / "r.csv",
        plot=tmp_path / "r.svg",
    )
    assert compare(console, wanted) == 0
    data = json.loads((tmp_path / "r.json").read_text())
    assert set(data["summary"]) == {"glibc", "sutler", "glibc-again"}
    assert data["summary"]["sutler"]["against_glibc"]["wall"]["rounds"] == 4
    with (tmp_path / "r.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) >= 12 and all(json.loads(row["command"])[0] == sys.executable for row in rows)
    assert "<svg" in (tmp_path / "r.svg").read_text()


def test_a_crash_is_reported_and_is_no_result(console, crashing_library: Path) -> None:
    program = "import ctypes; ctypes.CDLL(None).malloc(54321); print('done')"
    assert compare(console, request((*PYTHON, program), crashing_library)) == 1
    assert "its times do not count" in printed(console)
    assert "crashed" in printed(console)


def test_wrong_output_is_reported(console, lying_library: Path) -> None:
    assert compare(console, request(("/bin/echo", "truth"), lying_library)) == 1
    assert "wrong-output" in printed(console)


def test_a_program_that_fails_by_itself_is_compared_all_the_same(console, good_library: Path) -> None:
    assert compare(console, request(("/bin/sh", "-c", "exit 3"), good_library)) == 0
    assert "exit code 3 by itself" in printed(console)


def test_a_program_that_crashes_by_itself_is_refused(console, good_library: Path) -> None:
    with pytest.raises(ToolError, match="does not work by itself"):
        compare(console, request(("/bin/sh", "-c", "kill -SEGV $$"), good_library))


def test_a_missing_library_is_refused(console, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="does not exist"):
        compare(console, request(("/bin/true",), tmp_path / "nothing.so"))


def test_a_missing_program_is_refused(console, good_library: Path) -> None:
    with pytest.raises(ToolError, match="not found"):
        compare(console, request(("/no/such/program",), good_library))


def test_a_peer_that_cannot_be_had_is_left_out(console, good_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(peer, say):
        raise ToolError("no network")

    monkeypatch.setattr(peers, "install", refuse)
    assert compare(console, request(("/bin/true",), good_library, peers=("jemalloc",))) == 0
    assert "peer jemalloc is left out: no network" in printed(console)


def test_an_unknown_peer_is_a_mistake(console, good_library: Path) -> None:
    with pytest.raises(ToolError, match="no peer is called nosuch"):
        compare(console, request(("/bin/true",), good_library, peers=("nosuch",)))


def test_a_peer_that_does_not_serve_malloc_is_left_out(
    console, good_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "located", lambda peer: Library(peer.name, ("/no/such.so",)))
    said: list[str] = []
    assert peers.obtain(["jemalloc"], said.append) == []
    assert "left out" in said[0]
