# SPDX-License-Identifier: MIT
"""`sutler test`: build everything, run everything, end with one line that counts.

What runs is a table.  A tool that cannot be had leads to tests that skip, a build that fails counts as one failed test:
the last line is always `N passed, N failed` with `, N skipped` after it where some were.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Optional

from rich.console import Console

from . import packages, paths
from .libraries import OWN_SETTINGS

DEFAULT_TEST_TIMEOUT_S = 300


@dataclass
class Tally:
    """Counts that add up."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: "Tally") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def line(self) -> str:
        text = f"{self.passed} passed, {self.failed} failed"
        return f"{text}, {self.skipped} skipped" if self.skipped else text


@dataclass(frozen=True)
class Build:
    """One preset and the CTest labels (a regular expression) to run in it; None: not in that tier."""

    preset: str
    ci: Optional[str]
    full: Optional[str]
    ci_leaves_out: str = ""  # names (a regular expression) that only the full tier runs in this preset
    options: tuple[str, ...] = ("-DSUTLER_TESTS=ON", "-DSUTLER_BENCH=ON")
    ci_options: tuple[str, ...] = ()  # after the others, in the quick tier
    needs: tuple[str, ...] = ()
    may_be_empty: bool = False


# What a debug build adds is that the library checks itself.  These tests take the paths that others take under the same
# checks, or they test another program, and the release build runs them each time.  A regular expression of CMake's has at
# most nine groups: this has none.
AS_IN_RELEASE = {
    "install": "*",
    "predict": "*",
    "engines": "*",
    "errors": "number interior free_end",
    "preload": "sort gawk perl sqlite node php rustc coreutils stress_ng ruby nginx fakeroot eatmydata cgo faketime libpsx "
    "bubblewrap gcc redis *[.]cpu$ *[.]thread$ *[.]norseq$ *[.]own$",
    "surroundings": "area_taken fork_stdio fork_guest_ service_ preauth_",
    "manager": "whether limit leave_asleep_raw unnoticed paused credentials",
    "limits": "ulimit_v_300000 as_200 gdb_ restarts *[.]thread$ *[.]norseq$ *[.]own$",
    "unit": "rcs_every_instruction rcs_single_step heap_groups[.]cpu",
    "api": "*[.]cpu$ *[.]thread$ *[.]norseq$ *[.]own$",
    "fork": "*[.]cpu$ *[.]norseq$",
    "model": "*[.]cpu$ *[.]thread$ *[.]norseq$ *[.]own$",
    "stress": "*[.]cpu$ *[.]thread$ *[.]norseq$ *[.]own$",
    "hardened": "preload api_ fork_raw stress_swap *[.]cpu$",
}

# Under emulation one processor's order of memory serves the other's code, so that threads in numbers find nothing that
# they do not find in the release build; nor do single threads that try one size after the other.  They take most of the
# time.
AS_ON_X86_64 = {
    "api": "usable aligned allocx realloc introspect_busy",
    "stress": "storm handoff migrate swap cpusets",
    "blowup": "migrate",
    "unit": "heap_groups",
}


def pattern(tests: Mapping[str, str]) -> str:
    """Those tests as one regular expression of CTest's."""
    return "|".join(
        f"^{group}[.]{name}".replace("*", ".*") for group, names in tests.items() for name in names.split()
    )


BUILDS = (
    Build("release", ci="^ci$", full="^(ci|full)$"),
    Build("debug", ci="^ci$", full="^(ci|full)$", ci_options=("-DSUTLER_BENCH=OFF",), ci_leaves_out=pattern(AS_IN_RELEASE)),
    Build(
        "aarch64",
        ci="^ci$",
        full="^(ci|full)$",
        ci_leaves_out=pattern(AS_ON_X86_64),
        options=("-DSUTLER_TESTS=ON",),
        needs=("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64"),
    ),
    Build("musl", ci="^ci$", full="^(ci|full)$", options=("-DSUTLER_TESTS=ON",), needs=("musl-gcc",)),
    Build("asan", ci=None, full="^(ci|full)$", may_be_empty=True),
    Build("ubsan", ci=None, full="^(ci|full)$", may_be_empty=True),
    Build("tsan", ci=None, full="^(ci|full)$", may_be_empty=True),
)


def read_junit(path: Path) -> tuple[Tally, list[str]]:
    """Counts of a JUnit file as pytest and CTest write it, and the names of what failed.

    CTest reports a test whose program is missing as not run: that is a failure here.  A test that skipped itself says
    so by its return code.
    """
    tally, names = Tally(), []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        skipped = case.find("skipped")
        status = case.get("status", "run")
        if case.find("failure") is not None or case.find("error") is not None or status == "fail":
            tally.failed += 1
            names.append(case.get("name", "?"))
        elif skipped is not None or status in ("notrun", "disabled"):
            reason = (skipped.get("message") or "") if skipped is not None else ""
            if status == "notrun" and not reason.startswith("SKIP_"):
                tally.failed += 1
                names.append(f"{case.get('name', '?')} (not run: {reason or 'unknown reason'})")
            else:
                tally.skipped += 1
        else:
            tally.passed += 1
    return tally, names


def slowest(path: Path, count: int = 5) -> list[tuple[float, str]]:
    """The tests of a JUnit file that took longest."""
    cases = ElementTree.parse(path).getroot().iter("testcase")
    return sorted(((float(case.get("time") or 0), case.get("name", "?")) for case in cases), reverse=True)[:count]


class Session:
    """One `sutler test`: runs steps, prints what they do, and adds up."""

    def __init__(self, console: Console, full: bool) -> None:
        self.console, self.full = console, full
        self.home = paths.require_tree()
        self.total = Tally()
        self.broken: list[str] = []
        self.times: list[tuple[float, str]] = []
        self.jobs = len(os.sched_getaffinity(0))
        self.started = time.monotonic()

    def say(self, text: str) -> None:
        self.console.print(
            f"[{time.monotonic() - self.started:5.0f} s] {text}", markup=False, highlight=False, soft_wrap=True
        )

    def fail(self, name: str) -> None:
        self.total.failed += 1
        self.broken.append(name)

    def run(self, command: list[str], **settings: str) -> int:
        sys.stdout.flush()
        environment = {**os.environ, **settings}
        for name in ("LD_PRELOAD", *OWN_SETTINGS):
            environment.pop(name, None)
        return subprocess.run(command, cwd=self.home, env=environment, stdin=subprocess.DEVNULL).returncode

    def quiet(self, command: list[str]) -> tuple[int, str]:
        done = subprocess.run(
            command,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    def build(self, build: Build) -> bool:
        preset = build.preset
        self.say(f"building {preset}")
        for command in paths.build_commands(preset, build.options + (() if self.full else build.ci_options)):
            code, output = self.quiet(command)
            if code != 0:
                print("\n".join(output.splitlines()[-60:]))
                self.say(f"FAILED: {' '.join(command)}")
                self.fail(f"build {preset}")
                return False
        return True

    def count_junit(self, path: Path, title: str, code: int, may_be_empty: bool = False) -> None:
        try:
            tally, names = read_junit(path)
        except (OSError, ElementTree.ParseError):
            self.say(f"{title}: no result was written (exit code {code})")
            self.fail(title)
            return
        self.total.add(tally)
        self.times += [(seconds, f"{title}: {name}") for seconds, name in slowest(path)]
        self.broken += [f"{title}: {name}" for name in names]
        if code != 0 and not tally.failed:
            self.fail(f"{title} (exit code {code})")
        if not (tally.passed or tally.failed or tally.skipped) and not may_be_empty:
            self.say(f"{title}: no tests were found")
            self.fail(f"{title}: no tests were found")
        self.say(f"{title}: {tally.line()}")

    def layer_check(self) -> None:
        made = self.home / "build" / "release" / "src" / "CMakeFiles"
        objects = [str(made / name) for name in ("sutler_core.dir", "sutler.dir")]
        code, output = self.quiet([sys.executable, "tools/check_layers.py", "--objects", *objects])
        print(output, end="")
        if code == 0:
            self.total.passed += 1
        else:
            self.fail("layer check")

    def tool_tests(self) -> None:
        if not (self.home / "tests" / "tool").is_dir():
            return
        self.say("the command-line tool's tests")
        result = self.home / "build" / "pytest.xml"
        result.parent.mkdir(exist_ok=True)
        result.unlink(missing_ok=True)
        # -p no:cacheprovider and the bytecode setting keep the tree clean.
        code = self.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-n",
                str(self.jobs),
                "-p",
                "no:cacheprovider",
                f"--junitxml={result}",
                "tests/tool",
            ],
            PYTHONDONTWRITEBYTECODE="1",
        )
        self.count_junit(result, "tool", code)

    def ctest(self, build: Build, labels: str, leave_out: str = "") -> None:
        folder = self.home / "build" / build.preset
        result = folder / "ctest.xml"
        result.unlink(missing_ok=True)
        self.say(f"tests in {build.preset}")
        code = self.run(
            [
                "ctest",
                "--test-dir",
                str(folder),
                "-L",
                labels,
                *(["-E", leave_out] if leave_out else []),
                "-j",
                str(self.jobs + 1),  # some tests sleep
                "--output-on-failure",
                "--timeout",
                str(DEFAULT_TEST_TIMEOUT_S if not self.full else 3600),
                "--no-tests=ignore",
                "--output-junit",
                str(result),
            ]
        )
        if not result.exists() and code == 0 and build.may_be_empty:
            return
        self.count_junit(result, build.preset, code, build.may_be_empty)


def test(console: Console, full: bool) -> int:
    """Everything; returns the exit code.  The tally is the last thing printed."""
    session = Session(console, full)
    packages.ensure("test", session.say)
    if full:
        packages.ensure("test-full", session.say)
    for build in BUILDS:
        labels = build.full if full else build.ci
        if labels is None:
            continue
        missing = next((name for name in build.needs if not shutil.which(name)), None)
        if missing:
            session.say(f"{build.preset}: skipped, {missing} is not here")
            session.total.skipped += 1
            continue
        built = session.build(build)
        if build.preset == "release":
            session.layer_check()
            session.tool_tests()
        if built and (session.home / "tests" / "CMakeLists.txt").exists():
            session.ctest(build, labels, "" if full else build.ci_leaves_out)
    if session.broken:
        session.say("failed:")
        for name in session.broken:
            print(f"  {name}")
    session.say(
        "slowest: " + ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(session.times, reverse=True)[:8])
    )
    session.say(f"took {time.monotonic() - session.started:.0f} s")
    sys.stderr.flush()
    print(session.total.line(), flush=True)
    return 1 if session.total.failed else 0
