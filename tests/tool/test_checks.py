# SPDX-License-Identifier: MIT
"""The layer check, the test runner's counting, peers' table, and doctor."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT
from sutler_tool import doctor, packages, peers, testrun
from sutler_tool.paths import ToolError

specification = importlib.util.spec_from_file_location("check_layers", ROOT / "tools" / "check_layers.py")
assert specification and specification.loader
check_layers = importlib.util.module_from_spec(specification)
specification.loader.exec_module(check_layers)


@pytest.fixture
def source(tmp_path: Path):
    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def test_layers_may_look_down(source) -> None:
    root = source(
        {
            "base/b.h": "",
            "os/os.h": '#include "base/b.h"\n',
            "heap/h.c": '#include "os/os.h"\n#include "own.h"\n',
            "heap/own.h": "",
            "stats/s.h": "",
            "base/uses_leaf.c": '#include "stats/s.h"\n',
        }
    )
    graph = check_layers.includes(root)
    assert len(graph) == 6 and check_layers.upward(graph) == []


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("base/a.c", "os/x.h"),
        ("heap/a.S", "core/x.h"),
        ("stats/a.c", "heap/x.h"),
        ("options/a.h", "stats/x.h"),
        ("rcs/a.c", "manager/x.h"),
    ],
)
def test_looking_up_is_found(source, where: str, what: str) -> None:
    found = check_layers.upward(check_layers.includes(source({what: "", where: f'\n#include "{what}"\n'})))
    assert len(found) == 1 and found[0].startswith(f"{where}:2:")


def test_an_unknown_layer_is_found(source) -> None:
    assert "not a layer" in check_layers.upward(check_layers.includes(source({"surprise/a.c": ""})))[0]


def test_relative_includes_are_followed(source) -> None:
    root = source({"entry/e.h": "", "os/a.c": '#include "../entry/e.h"\n'})
    assert len(check_layers.upward(check_layers.includes(root))) == 1


def test_a_ring_of_includes_is_found(source) -> None:
    root = source({"heap/a.h": '#include "b.h"\n', "heap/b.h": '#include "c.h"\n', "heap/c.h": '#include "a.h"\n'})
    _, found = check_layers.levels(check_layers.includes(root))
    assert found == ["a cycle: heap/a.h -> heap/b.h -> heap/c.h -> heap/a.h"]


def compiled(root: Path) -> dict:
    for path in root.rglob("*.c"):
        subprocess.run(["cc", "-c", str(path), "-o", f"{path}.o"], check=True)
    return check_layers.symbols(root, [root])


def test_symbols_that_are_not_in_any_include_are_found(source) -> None:
    graph = compiled(
        source({"os/low.c": "void high(void); void low(void) { high(); }", "core/high.c": "void high(void) {}"})
    )
    assert check_layers.upward(graph) == ["os/low.c:high: os must not use core (core/high.c)"]


def test_a_ring_of_symbols_is_found_and_a_chain_has_levels(source) -> None:
    graph = compiled(
        source(
            {
                "heap/a.c": "void b(void); void a(void) { b(); }",
                "heap/b.c": "void c(void); void b(void) { c(); }",
                "heap/c.c": "void c(void) {}",
            }
        )
    )
    level, found = check_layers.levels(graph)
    assert found == [] and [level[f"heap/{x}.c"] for x in "abc"] == [2, 1, 0]
    graph["heap/c.c"]["heap/a.c"] = ["a"]
    assert len(check_layers.levels(graph)[1]) == 1
    assert check_layers.picture(graph).count("<rect x=") == 3


CTEST = """<testsuite>
<testcase name="good" status="run"/>
<testcase name="bad" status="fail"><failure message=""/></testcase>
<testcase name="skipped" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
<testcase name="program missing" status="notrun"><skipped message="Unable to find executable"/></testcase>
<testcase name="off" status="disabled"><skipped message="Disabled"/></testcase>
</testsuite>"""
PYTEST = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><error/></testcase>
<testcase name="d"><skipped type="pytest.skip"/></testcase></testsuite></testsuites>"""


@pytest.mark.parametrize(("text", "counts"), [(CTEST, (1, 2, 2)), (PYTEST, (1, 2, 1))])
def test_counting(tmp_path: Path, text: str, counts: tuple[int, int, int]) -> None:
    (tmp_path / "r.xml").write_text(text)
    tally, names = testrun.read_junit(tmp_path / "r.xml")
    assert (tally.passed, tally.failed, tally.skipped) == counts
    assert len(names) == counts[1]


def test_the_closing_line() -> None:
    assert testrun.Tally(3, 0).line() == "3 passed, 0 failed"
    assert testrun.Tally(3, 1, 2).line() == "3 passed, 1 failed, 2 skipped"


LEFT_OUT = [(group, name) for group, names in testrun.AS_IN_RELEASE.items() for name in names.split() if "*" not in name]


@pytest.mark.parametrize("group, name", LEFT_OUT)
def test_what_the_debug_build_leaves_out_is_there(group: str, name: str) -> None:
    """A test that was renamed would come back unnoticed."""
    folder = next(path for part in (".", "papers") if (path := ROOT / part / "tests" / group).exists())
    lists = "".join(path.read_text() for path in folder.rglob("CMakeLists.txt"))
    assert re.sub(r"_\d*$|\[.*", "", name) in lists


def test_what_the_debug_build_leaves_out_has_no_groups() -> None:
    """CMake's regular expressions have at most nine, and more fail without a word."""
    text = testrun.pattern(testrun.AS_IN_RELEASE)
    assert "(" not in text
    assert re.search(text, "preload.sort.rcs") and re.search(text, "api.basic.cpu")
    assert not re.search(text, "preload.bash.rcs") and not re.search(text, "api.basic.rcs")


def test_a_test_run_without_results_has_failed(tmp_path: Path, console) -> None:
    session = testrun.Session(console, False)
    session.count_junit(tmp_path / "absent.xml", "x", 0)
    assert session.total.failed == 1


def test_package_tables_are_sound() -> None:
    for group in ("test", "test-full", "demo", "profile", "screenshot", "real"):
        assert all(package.name and package.probe for package in packages.table(group))
    with pytest.raises(ToolError):
        packages.table("nosuch")


def test_a_package_that_cannot_be_had_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "table", lambda group: [packages.Package("none", "no-such-command", "nothing")])
    monkeypatch.setattr(packages, "install", lambda names, say: names)
    said: list[str] = []
    assert packages.ensure("test", said.append) == ["none"]
    assert said == ["could not get none: nothing is skipped"]


def test_a_package_is_tried_by_its_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought = tmp_path / "brought"
    row = packages.Package("old", str(brought), "nothing", ("new", "newest"))
    tried: list[str] = []

    def install(names: list[str], say) -> list[str]:  # type: ignore[no-untyped-def]
        tried.extend(names)
        if names == ["new"]:
            brought.touch()
        return []

    monkeypatch.setattr(packages, "table", lambda group: [row])
    monkeypatch.setattr(packages, "install", install)
    monkeypatch.setattr(packages, "exists", lambda name: True)
    assert packages.ensure("test", print) == []
    assert tried == ["old", "new"]


def test_every_peer_has_a_source() -> None:
    for name, peer in peers.table().items():
        assert peer.row["from"] in ("system", "debian", "pypi", "cargo", "tree"), name
        assert peer.about


def test_doctor_explains_a_process_without_the_library() -> None:
    found = doctor.findings([str(os.getpid())], None)
    assert found[0].mark == "!" and "not loaded" in found[0].what and "LD_PRELOAD" in found[0].meaning


def test_doctor_knows_a_process_with_the_library(
    compile_library, good_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libsutler.so"
    library.write_bytes(good_library.read_bytes())
    process = subprocess.Popen(["/bin/sleep", "20"], env={**os.environ, "LD_PRELOAD": str(library)})
    try:
        for _ in range(100):
            if "libsutler" in Path(f"/proc/{process.pid}/maps").read_text():
                break
            time.sleep(0.02)
        found = doctor.findings([str(process.pid)], None)
        assert found[0].mark == "+" and "served by Sutler" in found[0].meaning
        assert any("manager: not running" in item.what and "seccomp" not in item.meaning for item in found)
        monkeypatch.setattr(doctor, "filtered", lambda pid: pid == str(process.pid))
        found = list(doctor.process(process.pid))
        assert any("manager: not running" in item.what and "seccomp" in item.meaning for item in found)
    finally:
        process.kill()
        process.wait()


def test_doctor_tells_what_happens_to_deep_binding(good_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, mark in (("on", "+"), ("off", "-")):
        monkeypatch.setenv("SUTLER_DEEPBIND", value)
        found = [item for item in doctor.findings([], str(good_library)) if item.what.startswith("deep binding")]
        assert [item.mark for item in found] == [mark] and f"deep binding: {value}" == found[0].what


IF_MANAGER = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
__attribute__((constructor)) static void begin(void)
{
    const char *manager = getenv("SUTLER_MANAGER");
    if (manager && strcmp(manager, "on") == 0)
        %s;
}
"""


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ('prctl(PR_SET_NAME, "sutler-manager")', "set SUTLER_MANAGER=on"),
        ("raise(SIGSYS)", "by SIGSYS"),
        ("(void)0", "none came either"),
    ],
)
def test_doctor_tries_a_manager_under_a_filter(
    does: str, words: str, compile_library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "filtered", lambda pid="self": True)
    library = compile_library("manager_" + re.sub(r"\W", "", does), IF_MANAGER % does)
    found = [item for item in doctor.findings([], str(library)) if item.what.startswith("seccomp")]
    assert [item.mark for item in found] == ["-"] and words in found[0].meaning
    monkeypatch.setenv("SUTLER_MANAGER", "on")
    found = [item for item in doctor.findings([], str(library)) if item.what.startswith("seccomp")]
    assert [item.mark for item in found] == ["+"]


def test_doctor_sees_a_filter() -> None:
    """One that lets everything through, in a child."""
    script = """
import ctypes, sys
from sutler_tool import doctor
before = doctor.filtered()
allow = (ctypes.c_uint16 * 4)(0x06, 0, 0x0000, 0x7FFF)
program = (ctypes.c_uint64 * 2)(1, ctypes.addressof(allow))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0):
    sys.exit(77)
print(before, doctor.filtered())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools" / "sutler")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("no filters here")
    assert done.stdout.split()[1:] == ["True"], done.stderr


def test_doctor_on_nobody() -> None:
    with pytest.raises(ToolError, match="no process"):
        doctor.findings(["999999999"], None)


def test_doctor_describes_the_machine(good_library: Path) -> None:
    text = " ".join(item.what for item in doctor.findings([], str(good_library)))
    for word in ("rseq", "membarrier", "processors", "transparent huge pages", "overcommit", "library"):
        assert word in text


def test_the_command_line_ends_without_a_traceback() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools" / "sutler")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sutler_tool", *words], env=environment, capture_output=True, text=True, timeout=60
        )

    for words in (
        ("compare",),
        ("bench", "nosuch"),
        ("report", "/no/such/folder"),
        ("peers", "frob"),
        ("doctor", "999999999"),
        ("--frob",),
    ):
        done = run(*words)
        assert done.returncode == 2, (words, done)
        assert "Traceback" not in done.stderr and done.stderr.strip()
    assert run("bench", "--list").returncode == 0
