# SPDX-License-Identifier: MIT
"""`sutler stats`: pages are read as the library writes them, also while it writes."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sutler_tool import live
from sutler_tool.paths import ToolError

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "release" / "libsutler.so"
GROWS = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
kept = [libc.malloc(1000) for _ in range(80000)]
print("ready", flush=True)
sys.stdin.readline()
"""


def page(sequence: int, names: str, values: list[int]) -> bytes:
    body = struct.pack(f"={len(values) + 1}Q", 8 * (len(values) + 1), *values)
    head = live.MAGIC + struct.pack("=IIQ", 24 + len(body), sequence, 5_000_000_000)
    return (head + body + names.encode() + b"\0").ljust(4096, b"\0")


def test_figures_have_the_names_the_page_gives_them() -> None:
    read = live.parse(page(4, "live_bytes heaps ", [123, 2]), 7_000_000_000)
    assert read is not None and read.figures == {"live_bytes": 123, "heaps": 2} and read.age_s == 2.0


def test_a_page_being_written_is_not_read() -> None:
    assert live.parse(page(5, "live_bytes ", [1]), 0) is None


def test_another_file_is_refused() -> None:
    with pytest.raises(ToolError):
        live.parse(b"x" * 4096, 0)


def test_no_such_process(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ToolError, match="no process"):
        live.stats(None, 2**22 + 1, False, 0)  # type: ignore[arg-type]


def test_a_process_without_a_manager_gets_advice() -> None:
    with pytest.raises(ToolError, match="no manager"):
        live.stats(None, os.getpid(), False, 0)  # type: ignore[arg-type]


@pytest.mark.skipif(not LIBRARY.exists(), reason="the library has not been built")
def test_a_running_process_is_read() -> None:
    environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "SUTLER_MANAGER": "on"}
    with subprocess.Popen(
        [sys.executable, "-c", GROWS], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            figures: dict[str, int] = {}
            for _ in range(100):  # the page is written about once a second
                path = live.find(process.pid)
                figures = live.read(path).figures if path else {}
                if figures.get("live_bytes", 0) >= 80_000_000:
                    break
                time.sleep(0.1)
            assert 80_000_000 <= figures["live_bytes"] <= 120_000_000
            assert figures["live_blocks"] >= 80_000 and figures["heaps"] >= 1
        finally:
            process.communicate("done\n")
    assert process.returncode == 0


def test_files_opened_are_told_by_the_minute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    rate = live.per_minute(os.getpid(), {"file_opens": 1000})
    assert rate is not None and 0 < rate
    assert live.per_minute(2**22 + 1, {"file_opens": 1}) is None and live.per_minute(os.getpid(), {}) is None
    file = tmp_path / "page"
    file.write_bytes(page(2, "live_bytes file_opens ", [77, 1000]))
    monkeypatch.setattr(live, "find", lambda pid: file)
    assert live.stats(Console(), os.getpid(), False, 0) == 0
    assert "file opens a minute" in capsys.readouterr().out


def test_json_is_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    file = tmp_path / "page"
    file.write_bytes(page(2, "live_bytes ", [77]))
    monkeypatch.setattr(live, "find", lambda pid: file)
    assert live.stats(Console(), os.getpid(), True, 0) == 0
    assert json.loads(capsys.readouterr().out)["live_bytes"] == 77
