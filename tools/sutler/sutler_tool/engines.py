# SPDX-License-Identifier: MIT
"""The papers' own allocators (papers/engines/): each a library that drives an unmodified malloc library below it.

The backend is preloaded after the engine, never opened by path: a library that is there when the program starts has room
for its thread-local variables, one opened later may not (jemalloc's do not fit).  The front door's `run --engine` does the
same in shell.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Mapping, Optional

from .libraries import Library
from .paths import ToolError, build_preset, library, require_tree

PREFIX = "libsutler_"


def _folder() -> Path:
    return require_tree() / "build" / "release" / "engines"


def names() -> list[str]:
    """The engines that are built, as one types them."""
    return sorted(path.stem[len(PREFIX) :].replace("_", "-") for path in _folder().glob(f"{PREFIX}*.so"))


def engine_file(name: str) -> Path:
    """The engine's library; built when no engine is."""
    if not names():
        build_preset("release", (), ("sutler", "sutler_static", "engines/all"))
    path = _folder() / f"{PREFIX}{name.replace('-', '_')}.so"
    if not path.exists():
        raise ToolError(f"there is no engine '{name}'; there are: {', '.join(names())}")
    return path


def _serves_malloc(path: Path) -> bool:
    """Whether an engine can drive it.  A preloaded library without these would be passed by in silence."""
    try:
        done = subprocess.run(["readelf", "-W", "--dyn-syms", str(path)], capture_output=True, text=True)
    except FileNotFoundError:
        return True
    words = {word.split("@")[0] for line in done.stdout.splitlines() for word in line.split()[7:8]}
    return {"malloc", "free", "malloc_usable_size"} <= words


def backend_file(name: str) -> Optional[Path]:
    """The library behind a backend's name (glibc: None, sutler, a peer's) or path."""
    from . import peers

    if name in ("", "glibc"):
        return None
    if name == "sutler":
        path = library()
    elif "/" in name or Path(name).exists():
        path = Path(name).expanduser().resolve()
        if not path.exists():
            raise ToolError(f"the backend '{name}' does not exist")
    else:
        path = peers.path_of(name)
    if not _serves_malloc(path):
        raise ToolError(f"the backend '{name}' has no malloc_usable_size(): it is no malloc library that an engine can drive")
    return path


def engine(name: str, backend: str = "glibc", title: str = "", settings: Optional[Mapping[str, str]] = None) -> Library:
    """An engine over a backend, as something to run programs under."""
    below = backend_file(backend)
    chain = [engine_file(name)] + ([below] if below else [])
    for item in chain:
        if " " in str(item) or ":" in str(item):
            raise ToolError(f"LD_PRELOAD cannot express a path with a space or a colon: {item}")
    plain = name if below is None else f"{name} over {backend}"
    return Library(title or plain, tuple(str(item) for item in chain), dict(settings or {}))
