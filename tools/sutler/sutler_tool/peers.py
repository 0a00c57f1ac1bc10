# SPDX-License-Identifier: MIT
"""The other allocators: fetched with the ordinary package clients, proved to serve malloc, or reported and skipped.

data/peers.toml says where each comes from.  What is fetched or built lands in .cache/peers and stays there; `works`
(libraries.py) starts a program under each and asks who serves malloc, so a peer that silently does nothing never gets a
column of glibc's times.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

from rich.console import Console
from rich.table import Table

from . import packages
from .libraries import Library, works
from .packages import tomllib
from .paths import DATA, ToolError, build_preset, cache_dir, tree

Say = Callable[[str], None]


@dataclass(frozen=True)
class Peer:
    """One row of data/peers.toml."""

    name: str
    row: dict[str, Any]

    @property
    def about(self) -> str:
        return str(self.row.get("about", ""))

    @property
    def source(self) -> str:
        package = self.row.get("package", "")
        package = package if isinstance(package, str) else package[-1]
        return {"system": "system", "debian": "Debian ", "pypi": "PyPI ", "cargo": "crates.io ", "tree": "this tree"}[
            self.row["from"]
        ] + package


def table() -> dict[str, Peer]:
    """All peers, by name."""
    data = tomllib.loads((DATA / "peers.toml").read_text())
    return {name: Peer(name, row) for name, row in data.items()}


def named(names: Sequence[str]) -> list[Peer]:
    """The peers of these names; an unknown one is the user's mistake."""
    known = table()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ToolError(f"no peer is called {', '.join(unknown)}; there are: {', '.join(known)}")
    return [known[name] for name in names]


def _first_file(patterns: Sequence[str], below: Optional[Path] = None) -> Optional[Path]:
    for pattern in patterns:
        pattern = pattern.replace("@ARCH@", platform.machine())
        root, inner = (Path("/"), pattern.lstrip("/")) if pattern.startswith("/") else (below, pattern)
        if root is None:
            continue
        found = sorted(path for path in root.glob(inner) if path.is_file())
        if found:
            return found[-1]
    return None


def _folder(peer: Peer) -> Path:
    return cache_dir("peers", peer.name)


def located(peer: Peer) -> Optional[Library]:
    """The peer as it is on this machine now, or None."""
    settings = {str(k): str(v) for k, v in peer.row.get("settings", {}).items()}
    if peer.row["from"] == "system":
        return Library(peer.name, (), settings)
    if peer.row["from"] == "tree":
        home = tree()
        found = _first_file(peer.row["files"], home) if home else None
        return Library(peer.name, (str(found),), settings) if found else None
    if peer.row["from"] == "cargo":
        built = _folder(peer) / f"lib{peer.name}.so"
        recipe = _folder(peer) / "recipe.json"
        if not built.exists() or not recipe.exists() or recipe.read_text() != _recipe(peer):
            return None
        return Library(peer.name, (str(built),), settings)
    path = _first_file(peer.row["files"], _folder(peer) if peer.row["from"] == "pypi" else None)
    return Library(peer.name, (str(path),), settings) if path else None


def path_of(name: str) -> Path:
    """The library file of a peer that is here already; ToolError says how to get it."""
    found = located(named([name])[0])
    if found is None or not found.preload:
        raise ToolError(f"the peer {name} is not here: ./sutler peers install {name}")
    return Path(found.preload[0]).resolve()


def _recipe(peer: Peer) -> str:
    """What the built library depends on; another recipe means that it has to be built again."""
    shim = (DATA / "peer_shim.cc").read_text() if "shim" in peer.row else ""
    return json.dumps({"row": peer.row, "shim": shim}, sort_keys=True)


def _run(command: Sequence[str], cwd: Optional[Path] = None, **settings: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment.update(settings)
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except OSError as error:
        raise ToolError(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        last = [line for line in done.stdout.splitlines() if line.strip()]
        wrong = [line for line in last if "error" in line.lower()]
        raise ToolError(f"{command[0]} failed: {(wrong or last or ['no output'])[-1].strip()[:300]}")


def _install_debian(peer: Peer, say: Say) -> None:
    wanted = peer.row["package"]
    if isinstance(wanted, str):
        packages.install([wanted], say)
    else:
        packages.install_one(wanted, lambda: bool(_first_file(peer.row["files"])), say)
    if not _first_file(peer.row["files"]):
        raise ToolError(f"apt-get could not get {wanted}")


def _install_pypi(peer: Peer, say: Say) -> None:
    wanted = f"{peer.row['package']}{peer.row.get('version', '')}"
    say(f"getting {wanted} from PyPI into {_folder(peer)}")
    _run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "--upgrade",
            "--target",
            str(_folder(peer)),
            wanted,
        ]
    )


def _install_cargo(peer: Peer, say: Say) -> None:
    """Lets cargo fetch and compile the crate, then links its static library whole into a shared one."""
    if not shutil.which("cargo"):
        packages.install(["cargo", "rustc"], say)
    if not shutil.which("cargo"):
        raise ToolError("cargo is not here (Debian: apt-get install cargo)")
    if not shutil.which("cmake"):
        packages.install(["cmake"], say)
    folder, row = _folder(peer), peer.row
    say(f"building {row['package']} from crates.io (up to two minutes)")
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "lib.rs").write_text("")
    features = json.dumps(row.get("features", []))
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "peer"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\n'
        f'{row["package"]} = {{ version = "{row["version"]}", features = {features} }}\n'
    )
    target = folder / "target"
    shutil.rmtree(target, ignore_errors=True)
    _run(
        ["cargo", "build", "--release", "--quiet"],
        cwd=folder,
        CARGO_TARGET_DIR=str(target),
        CFLAGS=row.get("cflags", ""),
        CXXFLAGS=row.get("cxxflags", ""),
    )
    archive = _first_file([f"release/build/**/{row['archive']}"], target)
    if archive is None:
        raise ToolError(f"the crate left no {row['archive']} behind")
    built, linked = folder / f"lib{peer.name}.so", folder / f"lib{peer.name}.so.new"
    command = [
        "c++",
        "-shared",
        "-fPIC",
        "-O2",
        "-std=c++17",
        "-fno-builtin",
        "-ftls-model=initial-exec",
        "-o",
        str(linked),
    ]
    command += [f"-Wl,--defsym={name}={entry}" for name, entry in row.get("names", {}).items()]
    if "shim" in row:
        command += [*row["shim"], str(DATA / "peer_shim.cc")]
    command += [
        "-Wl,--whole-archive",
        str(archive),
        "-Wl,--no-whole-archive",
        "-Wl,-z,now",
        "-lpthread",
        "-ldl",
        "-latomic",
    ]
    _run(command)
    linked.replace(built)  # programs that run under the old one keep it
    (folder / "recipe.json").write_text(_recipe(peer))
    shutil.rmtree(target, ignore_errors=True)


def _install_tree(peer: Peer, say: Say) -> None:
    say(f"{peer.name}: building it")
    build_preset("release")


def install(peer: Peer, say: Say) -> Library:
    """Brings one peer and proves it; ToolError says why not."""
    found = located(peer)
    if found is None:
        {"debian": _install_debian, "pypi": _install_pypi, "cargo": _install_cargo, "tree": _install_tree}[
            peer.row["from"]
        ](peer, say)
        found = located(peer)
    if found is None:
        raise ToolError("its library was not found after installing")
    why = works(found)
    if why:
        raise ToolError(f"it does not work here: {why}")
    return found


def obtain(names: Sequence[str], say: Say) -> list[Library]:
    """The libraries of these peers, fetched where needed; one that cannot be had is reported and left out."""
    obtained = []
    for peer in named(names):
        try:
            obtained.append(install(peer, say))
        except ToolError as error:
            say(f"peer {peer.name} is left out: {error}")
    return obtained


def peers(console: Console, action: str, names: Sequence[str]) -> int:
    """The verb."""
    if action == "path":  # for the front door: where each of these is, one a line
        for name in names:
            print(path_of(name))
        return 0
    chosen = named(names) if names else list(table().values())
    say = lambda text: console.print(f"sutler: {text}", markup=False, highlight=False)  # noqa: E731
    if action not in ("list", "install"):
        raise ToolError(f"peers list, peers install or peers path, not '{action}'")
    problems: dict[str, str] = {}
    if action == "install":
        for peer in chosen:
            try:
                install(peer, say)
            except ToolError as error:
                problems[peer.name] = str(error)
                say(f"peer {peer.name} could not be had: {error}")
    shown = Table(title="Allocators to compare with", title_justify="left", pad_edge=False)
    for heading in ("name", "what", "from", "state"):
        shown.add_column(heading, overflow="fold")
    for peer in chosen:
        library = located(peer)
        if library is None:
            state = problems.get(peer.name, "not installed")
        else:
            why = works(library)
            state = f"does not work: {why}" if why else (library.preload[0] if library.preload else "ready")
        shown.add_row(peer.name, peer.about, peer.source, state)
    console.print(shown)
    return 0
