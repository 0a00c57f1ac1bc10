# SPDX-License-Identifier: MIT
"""What the tool's tests share: the tool on the path, small libraries compiled on the spot, a quiet console."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "sutler"))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LD_PRELOAD", "SUTLER_LIBRARY", "SUTLER_STATS", "SUTLER_MANAGER", "SUTLER_SYNC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("_SUTLER_TREE", str(ROOT))


@pytest.fixture(scope="session")
def compile_library(tmp_path_factory: pytest.TempPathFactory):
    """Compiles C text into a shared library."""
    folder = tmp_path_factory.mktemp("libraries")

    def compile_it(name: str, text: str) -> Path:
        source, target = folder / f"{name}.c", folder / f"lib{name}.so"
        source.write_text(text)
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", str(target), str(source), "-ldl"], check=True
        )
        return target

    return compile_it


PASSING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
void *malloc(size_t size) { %s return __libc_malloc(size); }
void free(void *block) { __libc_free(block); }
"""


@pytest.fixture(scope="session")
def good_library(compile_library) -> Path:
    """A malloc that does its work."""
    return compile_library("good", PASSING % "")


@pytest.fixture(scope="session")
def crashing_library(compile_library) -> Path:
    """A malloc that serves a few calls and then dies; enough for the proof that it is loaded."""
    return compile_library("crashing", PASSING % "if (size == 54321) __builtin_trap();")


@pytest.fixture(scope="session")
def lying_library(compile_library) -> Path:
    """A malloc that serves, but under which `echo` prints more than it should."""
    text = (
        PASSING % ""
        + """
#include <errno.h>
#include <string.h>
__attribute__((constructor)) static void lie(void) {
    if (strcmp(program_invocation_short_name, "echo") == 0 && write(1, "lies ", 5) != 5) _exit(1);
}
"""
    )
    return compile_library("lying", text)


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=200, highlight=False)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
