# SPDX-License-Identifier: MIT
"""Suites, the CSV, ctrl-C, and the report with its page."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT, printed
from sutler_tool import bench, report, results, rounds, suites, workloads
from sutler_tool.libraries import SAME, Library
from sutler_tool.measure import Run
from sutler_tool.paths import ToolError
from sutler_tool.stats import LEAST_ROUNDS

SUITE = """
title = "Small things"
about = "For tests."
rounds = 4
[[program]]
name = "line"
run = ["/bin/echo", "name=line ns_per_op=2.5 checksum=7 seconds=0.1"]
figure = "ns_per_op"
also = ["seconds"]
[[program]]
name = "plain"
run = ["/bin/echo", "words"]
[[program]]
name = "absent"
run = ["/no/such/program"]
[[program]]
name = "silent"
run = ["/bin/true"]
figure = "ns_per_op"
[[sweep]]
name = "swept"
run = ["/bin/echo", "name=swept ns_per_op=@value@"]
values = [1, 2]
label = "threads"
figure = "ns_per_op"
"""


@pytest.fixture
def suite_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "small.toml").write_text(SUITE)
    monkeypatch.setattr(suites, "folder", lambda: folder)
    return folder


def run_bench(console, out: Path, library: Path, **more) -> int:
    wanted = {"rounds": 0, "only": (), "same": True, "render": True, **more}
    return bench.bench(
        console,
        ["small"],
        [],
        wanted["rounds"],
        out,
        wanted["only"],
        wanted["same"],
        False,
        wanted["render"],
        str(library),
    )


def test_every_suite_of_the_tree_is_sound() -> None:
    names = suites.names()
    assert {"paper", "real", "micro"} <= set(names)
    for name in names:
        suite = suites.load(name)
        titles = [entry.name for entry in suite.entries]
        assert titles and len(set(titles)) == len(titles), name


def test_python_reads_the_environment_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under -I or -E it would ignore PYTHONMALLOC, and its own allocator would be measured."""
    monkeypatch.setattr(workloads, "write_words", lambda folder: None)
    jobs = [entry.job for entry in suites.load("real").entries] + workloads.demo_jobs(tmp_path, print)
    told = [job.command for job in jobs if job.environment.get("PYTHONMALLOC") == "malloc"]
    assert len(told) == 2
    for python, *options, _script in told:
        asked = [python, *options, "-c", "import sys; print(sys.flags.ignore_environment)"]
        assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "0\n"


def test_mistakes_in_a_suite_are_named(suite_folder: Path) -> None:
    (suite_folder / "bad.toml").write_text('[[program]]\nname = "x"\nrun = ["true"]\ntypo = 1\n')
    with pytest.raises(ToolError, match="typo"):
        suites.load("bad")
    (suite_folder / "worse.toml").write_text("[[program")
    with pytest.raises(ToolError, match="worse.toml"):
        suites.load("worse")
    (suite_folder / "cold.toml").write_text('[[program]]\nname = "x"\nrun = ["true"]\nwarm = "tepid"\n')
    with pytest.raises(ToolError, match="cold, x: warm"):
        suites.load("cold")
    with pytest.raises(ToolError, match="there is no suite 'nosuch'"):
        suites.load("nosuch")


def test_a_suite_is_run_recorded_and_reported(console, suite_folder: Path, good_library: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run_bench(console, out, good_library) == 0
    with (out / "runs.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    silent = [row for row in rows if row["program"] == "silent"]
    assert silent and all(row["status"] == "failed" and "no result line" in row["detail"] for row in silent)
    assert not any(row["program"] == "absent" for row in rows)
    assert "absent is left out" in printed(console)
    found = results.load(out)
    line = next(program for program in found.programs if program.name == "line")
    assert line.middle("sutler", "ns_per_op").value == 2.5
    assert line.middle("glibc", "seconds").value == 0.1
    tables = (out / "tables.md").read_text()
    assert "| line [ns] |" in tables and "failed 2 of 2" in tables
    with pytest.raises(ToolError, match="already holds results"):
        run_bench(console, out, good_library)


def test_the_page_stands_alone(console, suite_folder: Path, good_library: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_bench(console, out, good_library, rounds=2)
    page = (out / "index.html").read_text()
    assert page.count("<table>") >= 10 and page.count("<svg") == 3
    for metric in ("Wall time", "Cpu seconds", "Peak resident", "Resident memory averaged", "Page faults"):
        assert f"<h3>{metric}" in page
    assert "src=" not in page and "http-equiv" not in page
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        pytest.skip("no Chromium here")
    picture = tmp_path / "page.png"
    report.screenshot(out / "index.html", picture, print)
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size > 20_000
    # What the browser made of it: tables with rows, pictures with a size.
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            f"--user-data-dir={tmp_path}/profile",
            "--dump-dom",
            (out / "index.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.count("</table>") >= 10 and done.stdout.count("</svg>") == 3 and "Small things" in done.stdout


def test_of_repeated_runs_the_least_disturbed_counts() -> None:
    runs = [
        Run("a", "ok", wall_s=1, foreign_s=0.9, round=0),
        Run("a", "ok", wall_s=2, foreign_s=0.1, round=0),
        Run("a", "ok", wall_s=3, foreign_s=0.5, round=0),
        Run("a", "crashed", round=1),
        Run("a", "ok", round=1),
    ]
    assert [(run.wall_s, run.status) for run in results.counted(runs)] == [(2, "ok"), (0.0, "crashed")]


def test_no_round_is_begun_that_would_pass_the_limit() -> None:
    budget = bench.Budget(limit_s=60, rounds=5)
    assert budget.fits(), "the first round is always begun"
    budget.round_done(25.0, attempts=10, counted=10, again_s=25.0)
    assert budget.fits()
    budget.round_done(25.0, attempts=10, counted=10, again_s=25.0)
    assert not budget.fits()
    endless = bench.Budget(limit_s=0, rounds=5)
    endless.round_done(1e9, attempts=30, counted=10, again_s=1e9)
    assert endless.fits() and not endless.gives_up_repeating(1e9, 0.0)


def test_a_round_without_the_long_programs_is_begun_where_a_whole_one_would_not_fit() -> None:
    budget = bench.Budget(limit_s=60, rounds=5)
    budget.round_done(25.0, attempts=10, counted=10, again_s=25.0)
    budget.round_done(25.0, attempts=10, counted=10, again_s=8.0)
    assert budget.fits()
    entry = replace(suites.load("paper").entries[0], most_rounds=2)
    assert [entry.runs_in(turn) for turn in range(3)] == [True, True, False]
    assert replace(entry, most_rounds=0).runs_in(99)


def test_on_a_busy_machine_repeating_is_given_up_before_rounds_are() -> None:
    budget = bench.Budget(limit_s=60, rounds=5)
    assert not budget.gives_up_repeating(10.0, share=0.1), "12 s may be used by then"
    assert budget.gives_up_repeating(15.0, share=0.1)
    assert not budget.gives_up_repeating(99.0, share=0.1), "given up once"
    budget.round_done(24.0, attempts=30, counted=10, again_s=24.0)
    assert budget.fits() and budget.left_s(1) == 32.0, "the next ones do without"


def test_the_aa_partner_runs_where_glibc_does() -> None:
    of = {name: Library(name) for name in ("glibc", "sutler", "x", SAME.name)}
    entry = suites.load("paper").entries[0]
    under = lambda *names: [library.name for library in replace(entry, under=names).contenders(list(of.values()))]  # noqa: E731
    assert under("glibc", "x") == ["glibc", "x", SAME.name]
    assert under("sutler", "x") == ["sutler", "x"]
    assert under() == list(of)


def test_a_slow_suite_gets_fewer_whole_rounds(console, suite_folder: Path, good_library: Path, tmp_path: Path) -> None:
    (suite_folder / "slow.toml").write_text(
        'rounds = 50\n[[program]]\nname = "nap"\nrun = ["/bin/sleep", "0.4"]\nseconds = 0.4\n'
        '[[program]]\nname = "once"\nrun = ["/bin/true"]\nrounds = 1\n'
    )
    out = tmp_path / "out"
    code = bench.bench(
        console, ["slow"], [], 0, out, (), False, False, False, str(good_library), minutes=0.05
    )
    assert code == 0
    found = results.load(out)
    rounds = found.about["suites"]["slow"]["rounds_done"]
    assert 1 <= rounds < 50
    nap, once = found.programs
    assert len(nap.runs) == 2 * rounds and len(once.runs) == 2
    said = printed(console)
    assert f"{rounds} of 50 rounds fitted" in said
    assert "about 68 s on a quiet machine, at most 3 s" in said


def test_the_suites_of_the_papers_and_of_real_programs_end_in_time() -> None:
    """By what the suites say of their programs, with the peers that run where nobody names any."""
    for name in ("paper", "real"):
        suite = suites.load(name)
        chosen = [Library(word) for word in ("glibc", "sutler", *bench.PEERS)]
        assert suites.estimated_seconds(suite.entries, chosen, suite.rounds) < 15 * 60, name
        assert 0 < suite.minutes < 20, name
        assert suite.rounds >= LEAST_ROUNDS, f"{name}: too few rounds to show a difference"


def test_a_row_says_how_much_memory_is_touched_before_it(
    console, suite_folder: Path, good_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = '[[program]]\nname = "cold"\nrun = ["/bin/true"]\nwarm = "off"\n[[program]]\nname = "some"\nrun = ["/bin/echo"]\nwarm = 96\n'
    (suite_folder / "small.toml").write_text("rounds = 1\n" + rows)
    touched: dict[str, set[int]] = {}
    run_once = rounds.run_once

    def watched(command, library, limits, **how):
        touched.setdefault(command[0], set()).add(limits.warm_bytes)
        return run_once(command, library, limits, **how)

    monkeypatch.setattr(rounds, "run_once", watched)
    assert run_bench(console, tmp_path / "out", good_library, render=False) == 0
    assert touched == {"/bin/true": {0}, "/bin/echo": {96 << 20}}


def test_a_group_can_be_asked_for(suite_folder: Path) -> None:
    (suite_folder / "small.toml").write_text(
        '[[group]]\nname = "b, all"\n[[program]]\nname = "ab"\nrun = ["true"]\n'
        '[[program]]\nname = "c"\ngroup = "b, all"\nrun = ["true"]\n[[program]]\nname = "abc"\nrun = ["true"]\n'
    )
    suite = suites.load("small")
    chosen = lambda *only: [entry.name for entry in bench.usable(suite, only, print)]  # noqa: E731
    assert chosen("b all") == ["c"] and chosen("c") == ["c"] and chosen() == ["ab", "c", "abc"]
    assert chosen("ab") == ["ab"] and chosen("b") == ["ab", "abc"] and chosen("ab", "b all") == ["ab", "c"]


def test_a_group_takes_the_programs_of_another_suite(suite_folder: Path) -> None:
    (suite_folder / "lender.toml").write_text(
        'timeout = 7\n[[group]]\nname = "g"\n[[program]]\nname = "a"\ngroup = "g"\nrun = ["true"]\ninput = "words"\n'
        '[[program]]\nname = "b"\nrun = ["true"]\n'
    )
    group = '[[group]]\nname = "taken"\nprograms = "{}"\nunder = ["glibc"]\n[[program]]\nname = "own"\nrun = ["true"]\n'
    (suite_folder / "all.toml").write_text('packages = ["real", "paper"]\n' + group.format("lender"))
    suite = suites.load("all")
    assert [(entry.name, entry.group, entry.timeout_s) for entry in suite.entries] == [
        ("own", "", 300),
        ("a", "taken", 7),
        ("b", "taken", 7),
    ]
    assert suite.entries[1].under == ("glibc",) and suite.entries[1].job.cwd
    assert suite.packages == ("real", "paper") and suites.load("small").packages == ()
    (suite_folder / "some.toml").write_text(group.format("lender/g"))
    assert [entry.name for entry in suites.load("some").entries] == ["own", "a"]
    (suite_folder / "none.toml").write_text(group.format("lender/h"))
    with pytest.raises(ToolError, match="there are no programs lender/h"):
        suites.load("none")


def test_ctrl_c_leaves_complete_rows(suite_folder: Path, good_library: Path, tmp_path: Path) -> None:
    (suite_folder / "slow.toml").write_text('rounds = 50\n[[program]]\nname = "nap"\nrun = ["/bin/sleep", "0.1"]\n')
    out = tmp_path / "out"
    program = (
        "import sys; from pathlib import Path; from rich.console import Console\n"
        "from sutler_tool import bench, suites\n"
        f"suites.folder = lambda: Path({str(suite_folder)!r})\n"
        f"sys.exit(bench.bench(Console(), ['slow'], [], 0, Path({str(out)!r}), (), False, False, True,"
        f"{str(good_library)!r}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools" / "sutler")}
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A background job of a script starts with interrupts ignored, and python would then never see this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    runs = out / "runs.csv"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not runs.exists() or runs.read_text().count("\n") < 5):
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    with runs.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) >= 4
    assert all(row["command"] and row["status"] == "ok" for row in rows)
    assert (out / "index.html").exists()
    assert results.load(out).about["interrupted"] is True


def test_a_cut_off_last_row_is_left_out(console, suite_folder: Path, good_library: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_bench(console, out, good_library, render=False)
    text = (out / "runs.csv").read_text().rstrip("\n")
    before = sum(program.attempts for program in results.load(out).programs)
    (out / "runs.csv").write_text(text[:-5])
    assert sum(program.attempts for program in results.load(out).programs) == before - 1
