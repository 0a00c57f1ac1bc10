# SPDX-License-Identifier: MIT
"""What a program can be run under: the system's own malloc, Sutler, or a peer, each a list of preloads and settings."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Sequence

from .paths import ToolError, helper


@dataclass(frozen=True)
class Library:
    """One allocator to run under."""

    name: str
    preload: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    is_malloc: bool = True  # else something that is preloaded beside the system's

    def environment(self) -> dict[str, str]:
        """What has to be set for it; the user's own preloads come after."""
        own = os.environ.get("LD_PRELOAD", "")
        chain = [*self.preload, *([own] if own else [])]
        return {"LD_PRELOAD": ":".join(chain), **self.settings}


GLIBC = Library("glibc")
SAME = Library("glibc-again")  # A/A: the same once more under another name; whatever "difference" it shows is noise
OWN_SETTINGS = ("_SUTLER_TREE", "SUTLER_LIBRARY")  # this tool's own variables, which no program under test should see


def sutler(path: Path, settings: Mapping[str, str] | None = None, backend: Path | None = None) -> Library:
    """Sutler's own library (or an engine over a backend)."""
    chain = [str(path)] + ([str(backend)] if backend else [])
    for item in chain:
        if " " in item or ":" in item:
            raise ToolError(f"LD_PRELOAD cannot express a path with a space or a colon: {item}")
    return Library("sutler", tuple(chain), dict(settings or {}))


def run_under(library: Library, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a program under `library`, for a minute at most."""
    environment = {name: value for name, value in os.environ.items() if name not in OWN_SETTINGS}
    environment.update({name: value for name, value in library.environment().items() if value})
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def serving_malloc(library: Library) -> str:
    """The file that serves malloc() in a program started under `library`: the proof that a preload works."""
    done = run_under(library, [str(helper("probe.c", "-ldl"))])
    if done.returncode != 0:
        raise ToolError(f"a program under {library.name} failed: {done.stderr.strip()[-300:] or done.returncode}")
    return os.path.realpath(done.stdout.strip())


def works(library: Library) -> str:
    """An empty string if the library really serves malloc(), or is not to, else the reason it does not."""
    if not library.preload or not library.is_malloc:
        return ""
    try:
        server = serving_malloc(library)
    except (ToolError, subprocess.TimeoutExpired, OSError) as error:
        return str(error)
    expected = {os.path.realpath(path) for path in library.preload}
    return "" if server in expected else f"malloc is served by {server}"
