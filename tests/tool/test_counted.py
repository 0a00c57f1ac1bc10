# SPDX-License-Identifier: MIT
"""Figures made from counts: the thesis's cycles from simulated caches, and the table of engines over backends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import ROOT
from sutler_tool import callgrind, counted

sys.path.insert(0, str(ROOT / "papers" / "tests" / "engines"))
import matrix  # noqa: E402


def figures(events: dict[str, float]) -> dict[str, float]:
    return {key: float(value) for key, value in (pair.split("=") for pair in counted.simulated(events))}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "reads, data, writes, l1, l3, cpi",
    [
        (2.90456e12, 1.19999e12, 4.36845e11, 34196723504, 926451704, 3.62),
        (7.47492e11, 2.5168e11, 1.64777e11, 12479977159, 3975200916, 3.89),
        (1.160e12, 3.99297e11, 1.58126e11, 15685476832, 1107572947, 3.36),
    ],
    ids=["tonto", "omnetpp", "xalancbmk under LFB"],
)
def test_cycles_are_those_of_the_thesis(reads: float, data: float, writes: float, l1: int, l3: int, cpi: float) -> None:
    """Rows of its tables A.3 and A.4."""
    zero = dict.fromkeys(("D1mr", "D1mw", "DLmr", "DLmw"), 0)
    found = figures({"Ir": reads, "Dr": data, "Dw": writes, "I1mr": l1, "ILmr": l3, **zero})
    assert found["cpi"] == pytest.approx(cpi, abs=0.006)


def test_misses_of_all_kinds_and_threads_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "out.1-01").write_text("events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\ntotals: 100 20 10 1 2 3 0 1 1\n")
    (tmp_path / "out.1-02").write_text("events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\ntotals: 10 2 1 1 1 1 1 0 0\n")
    found = figures(callgrind.events(tmp_path.iterdir()))
    assert (found["reads"], found["writes"], found["l1_misses"], found["l3_misses"]) == (22, 11, 9, 3)
    assert found["cycles"] == 110 + 4 * 33 + 10 * 9 + 40 * 3 + 50 * 3


def test_the_matrix_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, record = tmp_path / "build", matrix.Record(tmp_path / "record.json")
    build.mkdir()
    (build / "CMakeCache.txt").write_text("ENGINES_JEMALLOC:FILEPATH=/lib/jemalloc.so\nENGINES_MIMALLOC:FILEPATH=NOTFOUND\n")
    asked: list[str] = []
    answers = iter(["", "hangs"])
    monkeypatch.setattr(matrix, "same_output", lambda case, preload, bench: asked.append(preload) or "same")
    monkeypatch.setattr(matrix, "forked", lambda build, environment, count: next(answers))
    matrix.run_pair(build, record, "abc", "mmt", "jemalloc", 600)
    cell = record.cell("mmt", "jemalloc")
    assert cell["forks"] == 200 and cell["forks failed"] == "hangs", "a run that fails has failed"
    assert asked[0].endswith("libsutler_mmt.so:/lib/jemalloc.so") and len(asked) == len(matrix.COLUMNS)
    matrix.run_pair(build, matrix.Record(record.path), "abc", "mmt", "jemalloc", 600)
    assert len(asked) == len(matrix.COLUMNS), "what is recorded is not run again"
    matrix.run_pair(build, record, "abc", "mmt", "mimalloc", 400)
    text = matrix.table(record)
    assert "| `mmt` | jemalloc | same | same | same | same | same | same | 200, then hangs |" in text
    assert "| `mmt` | mimalloc | no mimalloc here |" in text and "commit abc" in text
