# SPDX-License-Identifier: MIT
"""`predict`: the table, the costs' arithmetic, the verdict, and what is said where there is nothing to record."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT, printed
from rich.console import Console
from sutler_tool import foreseen, measure, plots, predict
from sutler_tool.measure import Run
from sutler_tool.paths import ToolError

BUILT = ROOT / "build" / "release" / "predict" / "predict_replay"
needs_build = pytest.mark.skipif(not BUILT.exists(), reason="papers/predict/ is not built")
COSTS = predict.Costs(hit_ns=50, miss_ns=30)

PROGRAM = """
#include <math.h>
int main(void) {
    volatile double sum = 0, x;
    for (int i = 0; i < 3000; i++) { x = i % 10; sum += sin(x); }
    for (int i = 0; i < 1000; i++) { x = 2.5; sum += tan(x); }
    return sum > 1e9;
}
"""


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("caller")
    (folder / "caller.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-o", str(folder / "caller"), str(folder / "caller.c"), "-lm"], check=True)
    return str(folder / "caller")


@needs_build
def test_calls_are_recorded_and_replayed(caller: str, tmp_path: Path) -> None:
    run, logs = predict.record([caller], tmp_path, 100000)
    assert run.ok and len(logs) == 1
    found = {entry.function: entry for entry in predict.replay(logs, 100000)}
    assert set(found) == {"sin", "tan", "all"}
    assert found["tan"].calls == 1000 and found["tan"].share("last") == 0.999  # as the thesis's constant ones
    assert found["sin"].calls == 3000 and found["sin"].share("order3") > 0.98
    assert found["all"].replayed == 4000 and found["sin"].cost_ns is not None


@needs_build
def test_a_full_log_says_so(caller: str, tmp_path: Path) -> None:
    _, logs = predict.record([caller], tmp_path, 2000)
    entry = {entry.function: entry for entry in predict.replay(logs, 2000)}["sin"]
    assert entry.calls == 3000 and entry.replayed == 2000


@needs_build
def test_what_bench_prints_of_a_function(caller: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert foreseen.main(["tan", "--", caller]) == 0
    row = measure.parse_pairs(capsys.readouterr().out)
    assert row["calls"] == "1000" and row["last"] == row["best"] == "99.90" and float(row["ns"]) > 0
    assert foreseen.main(["all", "--", caller]) == 0
    assert measure.parse_pairs(capsys.readouterr().out)["calls"] == "4000"
    assert foreseen.main(["pow", "--", caller]) == 1
    assert "no call of pow" in capsys.readouterr().err


@needs_build
def test_the_verb(caller: str, tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    dear = predict.Costs(hit_ns=1e9, miss_ns=30)  # whatever the clock says of a sine on this machine today
    monkeypatch.setattr(predict, "machine_costs", lambda: dear)
    assert predict.predict(console, [caller], 100000, tmp_path / "curve.svg", tmp_path / "all.json") == 0
    text = printed(console)
    assert "table D.1" in text and "99.90" in text and "It does not pay here" in text
    assert "<svg" in (tmp_path / "curve.svg").read_text() and "verdict" in (tmp_path / "all.json").read_text()


@needs_build
def test_nothing_to_record_is_explained(console: Console) -> None:
    with pytest.raises(ToolError, match="called none of sin"):
        predict.predict(console, ["/bin/true"], 1000, None, None)
    with pytest.raises(ToolError, match="was not found"):
        predict.predict(console, ["/nonexistent"], 1000, None, None)


def test_advice_tells_the_programs_failure_from_the_logs() -> None:
    good, bad = Run("glibc", "ok"), Run("log", "crashed", "SIGSEGV")
    assert "by itself" in predict.advice(bad, bad)
    assert "differently" in predict.advice(bad, good)


def test_the_curve_is_where_the_gain_is_zero() -> None:
    for share in (0.1, 0.5, 0.9):
        assert abs(COSTS.gain_ns(COSTS.least_cost_ns(share), share)) < 1e-9
        assert abs(COSTS.least_share(COSTS.least_cost_ns(share)) - share) < 1e-9
    assert COSTS.least_share(40) > 1 and COSTS.least_cost_ns(0) == float("inf")
    assert "<svg" in plots.svg_text(plots.break_even_figure(COSTS.least_share, [("sin", 20, 0.5)], "title"))


def entries(cost_ns: float, right: int) -> list[predict.Calls]:
    return [predict.Calls("gamma", 1, 1000, 1000, cost_ns, Counter(best=right))]


def test_the_verdict_is_plain() -> None:
    assert "It does not pay here: no function" in predict.verdict(entries(20, 990), COSTS, 1.0)[-1]
    assert "would pay from" in predict.verdict(entries(20, 990), COSTS, 1.0)[0]
    assert "would never pay" in predict.verdict(entries(20, 0), COSTS, 1.0)[0]
    assert "less than a hundredth" in predict.verdict(entries(5000, 990), COSTS, 100.0)[-1]
