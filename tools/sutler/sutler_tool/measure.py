# SPDX-License-Identifier: MIT
"""One run of one program under one allocator, and what became of it.

The rule that everything else leans on: a run that did not do its work is not a time.  Every run ends in exactly one
status, and only `ok` runs enter a median.

    ok            ended as the program ends by itself (same exit code as under glibc)
    failed        ended with another exit code
    crashed       ended by a signal
    timeout       was stopped at the time limit
    memory-limit  was stopped at the memory limit
    wrong-output  ended well but printed something else
    not-loaded    the allocator was not loaded: the time would be glibc's
    not-started   the program could not be started
    interrupted   the user pressed ctrl-C
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Mapping, Optional, Sequence

from .libraries import OWN_SETTINGS, Library
from .paths import ToolError, helper

STATUSES = (
    "ok",
    "failed",
    "crashed",
    "timeout",
    "memory-limit",
    "wrong-output",
    "not-loaded",
    "not-started",
    "interrupted",
)
FOREIGN_SHARE_LIMIT = 0.15
FOREIGN_SECONDS_LIMIT = 0.05
TAIL_BYTES = 4000


@dataclass(frozen=True)
class Limits:
    """What a run may use.  memory_bytes counts resident memory of the whole process tree; 0 means no limit."""

    timeout_s: float = 600.0
    memory_bytes: int = 0
    warm_bytes: int = 1 << 30


@dataclass(frozen=True)
class Run:
    """The record of one run: one row of the CSV."""

    library: str
    status: str
    detail: str = ""
    exit_code: int = 0
    wall_s: float = 0.0
    user_s: float = 0.0
    sys_s: float = 0.0
    manager_s: Optional[float] = None
    peak_bytes: int = 0
    peak_tree_bytes: int = 0
    mean_bytes: Optional[float] = None
    manager_faults: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    switches: int = 0
    preemptions: int = 0
    foreign_s: float = 0.0
    output: str = ""
    stdout_tail: str = ""
    stderr_tail: str = ""
    round: int = 0
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.sys_s

    @property
    def faults(self) -> int:
        """Page faults of the program's own threads: what the manager populated is its work, not the program's."""
        return max(0, self.minor_faults + self.major_faults - self.manager_faults)

    @property
    def disturbed(self) -> bool:
        """Whether somebody else used the machine while this ran."""
        return self.foreign_s > max(FOREIGN_SECONDS_LIMIT, FOREIGN_SHARE_LIMIT * self.wall_s)

    def because(self, status: str, detail: str) -> "Run":
        return replace(self, status=status, detail=detail)


def available_bytes() -> int:
    """The system's MemAvailable."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 1 << 30


def default_memory_limit() -> int:
    """Half of what is free now: enough for any honest program, and a runaway does not take the machine along."""
    return available_bytes() // 2


def warm_size(peak_bytes: int) -> int:
    """How much memory to touch before a run: what the program will touch and half more, up to 2 GiB or a quarter of the
    free memory.  Unknown (0) means 1 GiB."""
    most = min(2 << 30, available_bytes() // 4)
    return min(1 << 30, most) if not peak_bytes else max(min(peak_bytes * 3 // 2, most), min(64 << 20, most))


def parse_pairs(line: str) -> dict[str, str]:
    """`a=1 b=two` as a dict; words without `=` are left out."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word and not word.startswith("="))


def manager_seconds_reported(stderr: str) -> Optional[float]:
    """The manager's own cpu time out of a SUTLER_STATS=json report, if the program printed one."""
    match = None
    for match in re.finditer(r'"manager_cpu_seconds"\s*:\s*([0-9][0-9.eE+-]*)', stderr):
        pass
    return float(match.group(1)) if match else None


def child_settings(library: Library, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment changes of a run; an empty value means: unset."""
    settings = {name: "" for name in OWN_SETTINGS}
    settings.update(library.environment())
    settings.update(extra)
    return settings


def _tail(path: Path) -> str:
    with path.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - TAIL_BYTES))
        return stream.read().decode(errors="replace")


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def run_once(
    command: Sequence[str],
    library: Library,
    limits: Limits = Limits(),
    *,
    environment: Optional[Mapping[str, str]] = None,
    cwd: Optional[Path] = None,
    stdin: Optional[Path] = None,
    expected_code: int = 0,
    outputs: Sequence[Path] = (),
    hide_output: bool = False,
) -> Run:
    """Runs `command` once.  `outputs` are files the program writes, hashed together with its standard output.

    `hide_output` leaves standard output out of the hash, for programs that print times.
    """
    launcher = helper("launch.c")
    with tempfile.TemporaryDirectory(prefix="sutler-") as folder:
        report, out, err = (Path(folder) / name for name in ("report", "stdout", "stderr"))
        arguments = [str(launcher), "--report", str(report), "--timeout", str(limits.timeout_s)]
        arguments += ["--memory-limit", str(limits.memory_bytes), "--warm", str(limits.warm_bytes)]
        for name, value in child_settings(library, environment or {}).items():
            arguments += ["--env", f"{name}={value}"]
        arguments += ["--", *command]
        inherited = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        with out.open("wb") as out_stream, err.open("wb") as err_stream, open(stdin or os.devnull, "rb") as in_stream:
            process = subprocess.Popen(
                arguments, cwd=cwd, env=inherited, stdin=in_stream, stdout=out_stream, stderr=err_stream
            )
            try:
                process.wait()
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
                process.wait()
                raise
        text = report.read_text() if report.exists() else ""
        if not text:
            raise ToolError(f"the launcher failed: {_tail(err).strip()}")
        pairs = parse_pairs(text)
        stdout_tail, stderr_tail = _tail(out), _tail(err)
        digest = hashlib.sha256()
        if not hide_output:
            digest.update(_digest(out).encode())
        for path in outputs:
            digest.update(_digest(path).encode() if path.exists() else b"absent")
    manager = float(pairs["manager_s"]) if "manager_s" in pairs else manager_seconds_reported(stderr_tail)
    run = Run(
        library=library.name,
        status="ok",
        exit_code=int(pairs["code"]),
        wall_s=float(pairs["wall_s"]),
        user_s=float(pairs["user_s"]),
        sys_s=float(pairs["sys_s"]),
        manager_s=manager,
        peak_bytes=int(pairs["peak_bytes"]),
        peak_tree_bytes=int(pairs["peak_tree_bytes"]),
        mean_bytes=float(pairs["mean_bytes"]) if "mean_bytes" in pairs else None,
        manager_faults=int(pairs.get("manager_faults", 0)),
        minor_faults=int(pairs["minor_faults"]),
        major_faults=int(pairs["major_faults"]),
        switches=int(pairs["switches"]),
        preemptions=int(pairs["preemptions"]),
        foreign_s=max(0.0, float(pairs["foreign_s"])),
        output=digest.hexdigest(),
        stdout_tail=stdout_tail,
        stderr_tail=stderr_tail,
    )
    return _judge(run, pairs, limits, expected_code, command[0])


def _judge(run: Run, pairs: Mapping[str, str], limits: Limits, expected_code: int, program: str) -> Run:
    outcome, ended_by = pairs["outcome"], int(pairs["signal"])
    if outcome == "exec-failed":
        return run.because("not-started", f"{program}: {os.strerror(int(pairs['exec_errno']))}")
    if outcome == "interrupted":
        return run.because("interrupted", "stopped by the user")
    if outcome == "timeout":
        return run.because("timeout", f"stopped after {limits.timeout_s:g} s")
    if outcome == "memory-limit":
        return run.because("memory-limit", f"stopped above {limits.memory_bytes >> 20} MiB")
    if "cannot be preloaded" in run.stderr_tail:
        return run.because("not-loaded", "the dynamic linker could not preload the library")
    if ended_by:
        return run.because(
            "crashed", signal.Signals(ended_by).name if ended_by in set(signal.Signals) else f"signal {ended_by}"
        )
    if (
        run.exit_code >= 128
        and run.exit_code - 128 in {int(s) for s in signal.Signals}
        and run.exit_code != expected_code
    ):
        # A shell or compiler driver reports its child's death this way.
        return run.because("crashed", f"exit code {run.exit_code} ({signal.Signals(run.exit_code - 128).name})")
    if run.exit_code != expected_code:
        return run.because("failed", f"exit code {run.exit_code}, expected {expected_code}")
    return run


def check_outputs(runs: Sequence[Run], base: str = "glibc") -> tuple[list[Run], bool]:
    """Marks runs whose output differs from the base's.  Returns the runs and whether output could be compared at all: a
    program that prints something else each time under the same allocator cannot be checked."""
    reference = {run.output for run in runs if run.library == base and run.ok}
    if len(reference) != 1:
        return list(runs), False
    expected = next(iter(reference))
    marked = [
        run.because("wrong-output", f"output differs from {base}'s") if run.ok and run.output != expected else run
        for run in runs
    ]
    return marked, True


CSV_COLUMNS = (
    "suite",
    "program",
    "library",
    "round",
    "status",
    "detail",
    "exit_code",
    "wall_s",
    "user_s",
    "sys_s",
    "manager_s",
    "peak_bytes",
    "peak_tree_bytes",
    "mean_bytes",
    "manager_faults",
    "minor_faults",
    "major_faults",
    "switches",
    "preemptions",
    "foreign_s",
    "disturbed",
    "output",
    "extra",
    "preload",
    "command",
)


def csv_row(
    run: Run, library: Library, command: Sequence[str], suite: str = "", program: str = ""
) -> dict[str, object]:
    """One run as a row; `command` is kept whole, so that a row can be repeated."""
    return {
        "suite": suite,
        "program": program,
        "library": run.library,
        "round": run.round,
        "status": run.status,
        "detail": run.detail,
        "exit_code": run.exit_code,
        "wall_s": f"{run.wall_s:.6f}",
        "user_s": f"{run.user_s:.6f}",
        "sys_s": f"{run.sys_s:.6f}",
        "manager_s": "" if run.manager_s is None else f"{run.manager_s:.6f}",
        "peak_bytes": run.peak_bytes,
        "peak_tree_bytes": run.peak_tree_bytes,
        "mean_bytes": "" if run.mean_bytes is None else f"{run.mean_bytes:.0f}",
        "manager_faults": run.manager_faults,
        "minor_faults": run.minor_faults,
        "major_faults": run.major_faults,
        "switches": run.switches,
        "preemptions": run.preemptions,
        "foreign_s": f"{run.foreign_s:.3f}",
        "disturbed": int(run.disturbed),
        "output": run.output[:16],
        "extra": json.dumps(dict(run.extra), sort_keys=True) if run.extra else "",
        "preload": ":".join(library.preload),
        "command": json.dumps(list(command)),
    }
