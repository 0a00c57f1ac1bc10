# SPDX-License-Identifier: MIT
"""The shell front door: `run`, the list of verbs, and its refusals; preload.py keeps the same rules."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import PASSING, ROOT
from sutler_tool.preload import refusal

DOOR = str(ROOT / "sutler")


def door(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "_SUTLER_TREE")}
    return subprocess.run([DOOR, *words], env={**environment, **settings}, capture_output=True, text=True, timeout=60)


def test_alone_it_lists_the_verbs() -> None:
    done = door()
    assert done.returncode == 0
    for verb in ("demo", "test", "run", "build", "compare", "profile", "bench", "report", "corpus", "peers", "doctor"):
        assert f"./sutler {verb}" in done.stdout


def test_an_unknown_verb() -> None:
    done = door("frobnicate")
    assert done.returncode == 2 and "no verb 'frobnicate'" in done.stderr


def test_run_preloads_and_passes_arguments(good_library: Path) -> None:
    done = door(
        "run",
        "--library",
        str(good_library),
        "--",
        "/bin/sh",
        "-c",
        'echo "$LD_PRELOAD|$1|$SUTLER_LIBRARY"',
        "sh",
        "a b",
    )
    assert done.stdout == f"{good_library}|a b|\n" and done.returncode == 0


def test_run_refuses_what_is_no_malloc(tmp_path: Path) -> None:
    (tmp_path / "libtext.so").write_text("not a library")
    for path in (tmp_path / "libtext.so", Path("/proc/self/exe").resolve()):
        done = door("run", "--library", str(path), "--", "/bin/true")
        assert done.returncode == 2 and "no library with a malloc()" in done.stderr


def test_run_finds_malloc_in_a_library_of_many_symbols(compile_library) -> None:
    # More of a listing than a pipe holds, most of it behind malloc: whoever reads it only as far as that breaks the pipe.
    many = "".join(f"void nothing_{number}(void) {{}}\n" for number in range(20000))
    done = door("run", "--library", str(compile_library("many", PASSING % "" + many)), "--", "/bin/true")
    assert done.returncode == 0, done.stderr


def test_run_keeps_a_preload_that_is_there(good_library: Path, lying_library: Path) -> None:
    done = door(
        "run", "--library", str(good_library), "--", "/usr/bin/env", LD_PRELOAD=str(good_library.parent / "libgood.so")
    )
    assert f"LD_PRELOAD={good_library}:{good_library}" in done.stdout


def test_run_returns_the_programs_exit_code(good_library: Path) -> None:
    assert door("run", "--library", str(good_library), "--", "/bin/sh", "-c", "exit 7").returncode == 7


def test_run_options_become_settings(good_library: Path) -> None:
    done = door(
        "run", "--library", str(good_library), "--manager", "off", "--sync=cpu", "--stats", "--", "/usr/bin/env"
    )
    assert "SUTLER_MANAGER=off" in done.stdout and "SUTLER_SYNC=cpu" in done.stdout and "SUTLER_STATS=1" in done.stdout


@pytest.mark.parametrize(
    "words", [("--sync", "fast"), ("--manager", "maybe"), ("--frob",), ("--backend", "/x", "--", "true"), ("--sync",)]
)
def test_run_refuses_bad_options(words: tuple[str, ...], good_library: Path) -> None:
    done = door("run", "--library", str(good_library), *words)
    assert done.returncode == 2 and done.stderr.startswith("sutler: ")


def test_a_missing_library_is_said(tmp_path: Path) -> None:
    done = door("run", "--library", str(tmp_path / "none.so"), "--", "true")
    assert done.returncode == 2 and "does not exist" in done.stderr


@pytest.fixture(scope="session")
def odd_programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """Programs that a preload cannot reach, and a word of the reason."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    static, normal, marked, plain = (folder / name for name in ("static", "normal", "setuid", "plain"))
    subprocess.run(["cc", "-static", "-o", str(static), str(folder / "main.c")], check=True)
    subprocess.run(["cc", "-o", str(normal), str(folder / "main.c")], check=True)
    shutil.copy(normal, marked)
    marked.chmod(0o4755)
    plain.write_text("text")
    foreign = folder / "foreign"
    if shutil.which("musl-gcc"):
        subprocess.run(["musl-gcc", "-o", str(foreign), str(folder / "main.c")], check=True)
    script = folder / "script"
    script.write_text(f"#!{static} -x\n")
    script.chmod(0o755)
    return {
        "static": (static, "statically linked"),
        "setuid": (marked, "setuid"),
        "missing": (folder / "nothing", "not found"),
        "plain": (plain, "not executable"),
        "musl": (foreign, "./sutler build musl"),
        "folder": (folder, "directory"),
        "script of a static interpreter": (script, "statically linked"),
    }


@pytest.mark.parametrize(
    "kind", ["static", "setuid", "missing", "plain", "folder", "script of a static interpreter", "musl"]
)
def test_both_refuse_for_the_same_reason(kind: str, odd_programs, good_library: Path) -> None:
    program, reason = odd_programs[kind]
    if kind == "musl" and not program.exists():
        pytest.skip("there is no musl-gcc")
    assert reason in refusal(str(program))
    done = door("run", "--library", str(good_library), "--", str(program))
    assert done.returncode == 2 and reason in done.stderr


def test_both_accept_ordinary_programs(good_library: Path) -> None:
    for program in ("true", "/bin/sh", "/usr/bin/env"):
        assert refusal(program) == ""
        assert (
            door(
                "run", "--library", str(good_library), "--", program, *(["-c", "true"] if program == "/bin/sh" else [])
            ).returncode
            == 0
        )
