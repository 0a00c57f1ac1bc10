# SPDX-License-Identifier: MIT
"""`run --engine`: which libraries a program then gets, and what is said when it cannot be; engines in suites."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from sutler_tool import bench, callgrind, counted, engines, peers, report, results, suites
from sutler_tool.libraries import works
from sutler_tool.paths import ToolError

BUILT = ROOT / "build" / "release" / "engines"
pytestmark = pytest.mark.skipif(not (BUILT / "libsutler_mmt.so").exists(), reason="the engines are not built")
ALL = ["direct", "lock-free-bins", "locked-bins", "mmt", "pass-through", "rcs-cache"]
WHO = """
import ctypes
names = ctypes.CDLL(None)
for name in ("sutler_engine_name", "sutler_engine_backend"):
    function = getattr(names, name)
    function.restype = ctypes.c_char_p
    print(function().decode())
"""


def door(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "_SUTLER_TREE")}
    return subprocess.run(
        [str(ROOT / "sutler"), "run", *words], env={**environment, **settings}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("engine", ALL)
def test_a_program_runs_under_the_engine_over_the_systems_malloc(engine: str) -> None:
    done = door("--engine", engine, "--", "/usr/bin/python3", "-c", WHO)
    assert done.returncode == 0 and done.stderr == ""
    name, below = done.stdout.splitlines()
    assert name == engine.replace("-", "_") and "/libc.so" in below


@pytest.mark.parametrize("backend", ["sutler", "jemalloc", "mimalloc"])
def test_the_backend_is_the_one_asked_for(backend: str) -> None:
    if backend != "sutler" and peers.located(peers.named([backend])[0]) is None:
        pytest.skip(f"no {backend} here")
    done = door("--engine", "lock_free_bins", "--backend", backend, "--", "/usr/bin/python3", "-c", WHO)
    assert done.returncode == 0, done.stderr
    assert f"lib{backend}" in done.stdout.splitlines()[1]
    assert works(engines.engine("lock-free-bins", backend)) == ""


def test_the_library_below_does_not_mind_the_engines_settings() -> None:
    settings = {"SUTLER_LFB": "three", "SUTLER_MMT_DESIGN": "2", "SUTLER_CHECKS": "inline", "SUTLER_ENGINE_SPINS": "0"}
    done = door("--engine", "lock-free-bins", "--backend", "sutler", "--", "/bin/true", **settings)
    assert done.returncode == 0 and done.stderr == ""
    done = door("--engine", "lock-free-bins", "--backend", "sutler", "--", "/bin/true", SUTLER_LFC="three")
    assert done.stderr == "sutler: SUTLER_LFC: unknown option; ignored\n"


def test_a_backend_by_path_is_preloaded_after_the_engine(tmp_path: Path) -> None:
    path = ROOT / "build" / "release" / "libsutler.so"
    done = door("--engine", "mmt", "--backend", str(path), "--", "/usr/bin/env")
    assert f"LD_PRELOAD={BUILT}/libsutler_mmt.so:{path}" in done.stdout


def test_mistakes_are_explained(compile_library, good_library: Path) -> None:
    no_malloc = str(compile_library("no_malloc", "int nothing(void);\nint nothing(void) { return 0; }\n"))
    for words, said in (
        (("--engine", "nosuch"), "there is no engine 'nosuch'; there are: " + ", ".join(ALL)),
        (("--engine", "mmt", "--backend", "/no/such.so"), "'/no/such.so' does not exist"),
        (("--engine", "mmt", "--backend", no_malloc), "no malloc library that an engine can drive"),
        (("--engine", "mmt", "--backend", "nosuch"), "no peer is called nosuch"),
        (("--backend", "sutler"), "--backend goes with --engine"),
        (("--engine", "mmt", "--library", str(good_library)), "only one of them"),
    ):
        done = door(*words, "--", "true")
        assert done.returncode == 2 and said in done.stderr, (words, done.stderr)
    with pytest.raises(ToolError, match="there is no engine 'nosuch'"):
        engines.engine("nosuch")
    with pytest.raises(ToolError, match="does not exist"):
        engines.engine("mmt", "/no/such.so")
    with pytest.raises(ToolError, match="no malloc library"):
        engines.engine("mmt", no_malloc)


SUITE = """
title = "Groups"
about = "For tests."
rounds = 1
repeats = 0
peers = []
[[library]]
name = "MMT"
engine = "mmt"
[[library]]
name = "lost"
engine = "nosuch"
[[group]]
name = "one"
title = "First table"
under = ["glibc", "MMT"]
[[group]]
name = "two"
title = "Second table"
under = ["sutler", "MMT"]
base = "sutler"
[[program]]
name = "a"
group = "one"
run = ["/bin/echo", "name=a ns_per_op=2"]
figure = "ns_per_op"
[[program]]
name = "b"
group = "two"
run = ["/bin/echo", "name=b ns_per_op=3"]
figure = "ns_per_op"
"""


def test_groups_of_a_suite(console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "groups.toml").write_text(SUITE)
    monkeypatch.setattr(suites, "folder", lambda: tmp_path)
    out = tmp_path / "out"
    pages = [tmp_path / "page.md", tmp_path / "other.md"]
    for page in pages:
        page.write_text("Before.\n\n<!-- table one -->\n<!-- end -->\n\nAfter.\n")
    with pytest.raises(ToolError, match="nowhere.md"):
        bench.bench(console, ["groups"], None, 0, out, (), False, False, True, None, None, [tmp_path / "nowhere.md"])
    assert bench.bench(console, ["groups"], None, 0, out, (), False, False, False, None, None, pages) == 0
    assert all("| a [ns] | 2.00 |" in page.read_text() and page.read_text().endswith("After.\n") for page in pages)
    found = results.load(out)
    ran = {program.name: {run.library for run in program.runs} for program in found.programs}
    assert ran == {"a": {"glibc", "MMT"}, "b": {"sutler", "MMT"}}
    tables = [table for section in report.sections(found, "groups") for table in section.tables]
    assert [title.split(":")[0] for title, _, _ in tables] == ["First table"] * 2 + ["Second table"] * 2
    assert tables[3][0].endswith("ratio to sutler") and tables[3][2][0] == ["b", "1.00"]
    assert "lost is left out: there is no engine 'nosuch'" in console.file.getvalue()


def test_a_group_that_names_nobody_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "folder", lambda: tmp_path)
    (tmp_path / "bad.toml").write_text(SUITE.replace('under = ["glibc", "MMT"]', 'under = ["glibc", "MTM"]'))
    with pytest.raises(ToolError, match="MTM"):
        suites.load("bad")
    (tmp_path / "worse.toml").write_text(SUITE.replace('group = "two"', 'group = "three"'))
    with pytest.raises(ToolError, match="three"):
        suites.load("worse")


def test_instructions_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind here")
    assert counted.main(["--", "/bin/ls", "/"]) == 0
    line = capsys.readouterr().out
    assert "malloc_instructions=" in line and "share_percent=" in line
    assert "manager_instructions=0.0" in line  # one thread only
    assert counted.main(["--", "/bin/false"]) != 0


def test_the_malloc_below_an_engine_is_no_call_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "out.1").write_text(
        "ob=(1) /usr/bin/program\nfn=(1) main\n1 10\ncob=(2) /b/libsutler_direct.so\ncfn=(2) malloc\ncalls=3 0\n1 300\n"
        "ob=(2)\nfn=(2)\n1 60\ncfn=(3) direct_allocate\ncalls=3 0\n1 240\n"
        "fn=(3)\n1 30\ncob=(3) /lib/libc.so.6\ncfn=(2)\ncalls=3 0\n1 210\n"
        "ob=(3)\nfn=(2)\n1 210\ntotals: 310\n"
    )
    cost = callgrind.read([tmp_path / "out.1"])
    assert cost.calls == {"malloc": 3} and cost.instructions == {"malloc": 300} and cost.total == 310


def test_libraries_with_a_colon_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "engine_file", lambda name: tmp_path / "a:b.so")
    with pytest.raises(ToolError, match="colon"):
        engines.engine("mmt")
