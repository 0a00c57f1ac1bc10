# SPDX-License-Identifier: MIT
"""Where things are: the source tree, the cache, the built library, and the small C helpers compiled on first use."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Sequence

DATA = Path(__file__).resolve().parent / "data"


class ToolError(Exception):
    """Something the user can do something about; the text says what."""


def tree() -> Path | None:
    """The source tree this tool works on, or None when it is installed on its own."""
    named = os.environ.get("_SUTLER_TREE")
    candidates = [Path(named)] if named else []
    candidates.append(Path(__file__).resolve().parents[3])
    for candidate in candidates:
        if (candidate / "CMakePresets.json").exists() and (candidate / "sutler").exists():
            return candidate
    return None


def require_tree() -> Path:
    found = tree()
    if found is None:
        raise ToolError("this verb works on Sutler's source tree: run it as ./sutler inside a clone")
    return found


def cache_dir(*parts: str) -> Path:
    """A folder for what can be made again: `.cache` in the tree, else the user's own cache."""
    home = tree()
    base = home / ".cache" if home else Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "sutler"
    folder = base.joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def library(explicit: str | None = None, build: bool = True) -> Path:
    """The library under test: --library, else SUTLER_LIBRARY, else the tree's release build (built when absent)."""
    named = explicit or os.environ.get("SUTLER_LIBRARY")
    if named:
        path = Path(named).expanduser().resolve()
        if not path.exists():
            raise ToolError(f"the library '{named}' does not exist")
        return path
    home = require_tree()
    path = home / "build" / "release" / "libsutler.so"
    if not path.exists() and build:
        print("sutler: the library is not built yet: building it (once)", file=sys.stderr, flush=True)
        build_preset("release")
    if not path.exists():
        raise ToolError("the library is not built: ./sutler build")
    return path


def hardened() -> Path:
    """The tree's hardened library (built when absent)."""
    path = require_tree() / "build" / "release" / "libsutler-hardened.so"
    if not path.exists():
        build_preset("release")
    return path


def build_commands(preset: str, options: Sequence[str] = (), targets: Sequence[str] = ()) -> list[list[str]]:
    """Configure, then build.  `options` are said each time: a build folder remembers what it was told before.
    No targets: everything."""
    build = ["cmake", "--build", "--preset", preset]
    return [["cmake", "--preset", preset, *options], build + (["--target", *targets] if targets else [])]


def build_preset(
    preset: str, options: Sequence[str] = (), targets: Sequence[str] = ("sutler", "sutler_static", "sutler_hardened")
) -> None:
    """Configures and builds one CMake preset; the compiler's words are shown only when it fails."""
    home = require_tree()
    for command in build_commands(preset, options, targets):
        done = subprocess.run(command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-40:])
            raise ToolError(f"`{' '.join(command)}` failed:\n{tail}")


def helper(source: str, *flags: str, shared: bool = False) -> Path:
    """Compiles data/SOURCE once per content and returns the program (or shared library)."""
    text = (DATA / source).read_bytes()
    digest = hashlib.sha256(text + repr((flags, shared)).encode()).hexdigest()[:16]
    stem = Path(source).stem
    target = cache_dir("helpers") / (f"lib{stem}-{digest}.so" if shared else f"{stem}-{digest}")
    if target.exists():
        return target
    temporary = target.with_name(f"{target.name}.{os.getpid()}")
    command = [os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-Wall", "-Wextra"]
    command += ["-shared", "-fPIC", "-ftls-model=initial-exec"] if shared else []
    command += [str(DATA / source), "-o", str(temporary), *flags]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError as error:
        raise ToolError("no C compiler was found (Debian: apt-get install build-essential)") from error
    if done.returncode != 0:
        raise ToolError(f"could not compile {source}:\n{done.stdout}")
    temporary.replace(target)
    return target
