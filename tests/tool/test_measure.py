# SPDX-License-Identifier: MIT
"""One run: what it costs, and that each way of not doing the work is told apart."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sutler_tool.libraries import GLIBC, Library, works
from sutler_tool.measure import Limits, Run, check_outputs, manager_seconds_reported, parse_pairs, run_once, warm_size

QUICK = Limits(timeout_s=20, memory_bytes=0, warm_bytes=0)
SH = "/bin/sh"


def run(*command: str, limits: Limits = QUICK, library: Library = GLIBC, **more) -> Run:
    return run_once(command, library, limits, **more)


def test_a_good_run() -> None:
    one = run(SH, "-c", "echo hello; echo word >&2")
    assert one.ok and one.exit_code == 0
    assert one.stdout_tail == "hello\n" and one.stderr_tail == "word\n"
    assert 0 < one.wall_s < 10 and one.peak_bytes > 0 and one.minor_faults > 0


def test_memory_is_the_programs_not_the_tools() -> None:
    ballast = bytearray(200 << 20)
    one = run("/bin/true")
    assert one.peak_bytes < 30 << 20
    assert len(ballast) == 200 << 20


def test_cpu_and_memory_of_grandchildren_count() -> None:
    work = f"{sys.executable} -I -S -c 'x = bytearray(80 << 20); print(sum(i * i for i in range(1500000)))'"
    one = run(SH, "-c", f"{work}; true")
    assert one.ok, one
    assert one.peak_bytes > 80 << 20
    assert one.cpu_s > 0.02


def test_exit_codes() -> None:
    assert run(SH, "-c", "exit 3").status == "failed"
    assert run(SH, "-c", "exit 3", expected_code=3).ok


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "KILL"])
def test_a_crash_is_a_crash(name: str) -> None:
    one = run(SH, "-c", f"kill -{name} $$")
    assert one.status == "crashed" and name in one.detail


def test_a_crash_below_a_shell_is_a_crash() -> None:
    assert run(SH, "-c", "sh -c 'kill -SEGV $$'; exit $?").status == "crashed"


def test_timeout_kills_the_whole_tree(tmp_path: Path) -> None:
    one = run(SH, "-c", f"sleep 30 & echo $! > {tmp_path}/pid; wait", limits=Limits(0.5, 0, 0))
    assert one.status == "timeout" and one.wall_s < 10
    pid = int((tmp_path / "pid").read_text())
    status = Path(f"/proc/{pid}/stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"


def test_memory_limit() -> None:
    program = "import time\nx = []\nwhile True:\n    x.append(b'x' * (1 << 20)); time.sleep(0.002)"
    one = run(sys.executable, "-I", "-S", "-c", program, limits=Limits(60, 120 << 20, 0))
    assert one.status == "memory-limit"


def test_a_program_that_is_not_there() -> None:
    one = run("/no/such/program")
    assert one.status == "not-started" and "No such file" in one.detail


def test_a_missing_library_is_no_fast_run() -> None:
    one = run("/bin/echo", "hi", library=Library("ghost", ("/no/such/library.so",)))
    assert one.status == "not-loaded"
    assert works(Library("ghost", ("/no/such/library.so",)))


def test_a_preload_is_proved(good_library: Path) -> None:
    assert works(Library("good", (str(good_library),))) == ""
    assert works(Library("libm", (_some_other_library(),))) != ""


def _some_other_library() -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split()[-1]
        if "libz.so" in path or "libm.so" in path or "libexpat" in path:
            return path
    pytest.skip("no library without a malloc is loaded here")


def test_settings_reach_the_program_and_the_tools_own_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUTLER_LIBRARY", "/somewhere")
    one = run(SH, "-c", 'echo "$A/$SUTLER_LIBRARY/$_SUTLER_TREE"', environment={"A": "b=c"})
    assert one.stdout_tail == "b=c//\n"


def test_output_files_count(tmp_path: Path) -> None:
    result = tmp_path / "result"
    one = run(SH, "-c", f"echo 1 > {result}", outputs=(result,))
    two = run(SH, "-c", f"echo 2 > {result}", outputs=(result,))
    three = run(SH, "-c", f"echo 1 > {result}", outputs=(result,))
    assert one.output == three.output != two.output


def test_wrong_output_is_told_apart(lying_library: Path) -> None:
    base = [run("/bin/echo", "truth") for _ in range(2)]
    lie = run("/bin/echo", "truth", library=Library("lying", (str(lying_library),)))
    runs, comparable = check_outputs([*base, lie])
    assert comparable
    assert [one.status for one in runs] == ["ok", "ok", "wrong-output"]


def test_varying_output_cannot_be_compared() -> None:
    runs = [Run("glibc", "ok", output="a"), Run("glibc", "ok", output="b"), Run("sutler", "ok", output="c")]
    marked, comparable = check_outputs(runs)
    assert not comparable and all(one.ok for one in marked)


def test_parsing() -> None:
    assert parse_pairs("name=x seconds=1.5 text =odd a=b=c") == {"name": "x", "seconds": "1.5", "a": "b=c"}
    assert manager_seconds_reported('noise {"manager_cpu_seconds": 0.25, "x": 1}') == 0.25
    assert manager_seconds_reported("nothing") is None


def test_warming_follows_the_program() -> None:
    assert warm_size(0) >= warm_size(10 << 20)
    assert warm_size(10 << 20) <= 64 << 20
    assert warm_size(10 << 20) <= warm_size(1 << 40) <= 2 << 30


def test_a_disturbed_run_says_so() -> None:
    assert Run("a", "ok", wall_s=1.0, foreign_s=0.5).disturbed
    assert not Run("a", "ok", wall_s=1.0, foreign_s=0.1).disturbed
    assert not Run("a", "ok", wall_s=0.01, foreign_s=0.02).disturbed
