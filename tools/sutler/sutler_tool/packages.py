# SPDX-License-Identifier: MIT
"""Getting what a verb needs from Debian packages, saying so first, and living without what cannot be had.

A program that is already there from elsewhere (node from its vendor, rustc from rustup) counts as there: `probe` names
what has to exist, a command or the pattern of a file.  The tables are data/packages.toml.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Callable, Sequence

from .paths import DATA, ToolError

try:
    import tomllib
except ModuleNotFoundError:  # Python before 3.11
    import tomli as tomllib  # type: ignore[no-redef]


@dataclass(frozen=True)
class Package:
    """One Debian package and how to see that what it brings is already there."""

    name: str
    probe: str
    why: str
    others: tuple[str, ...] = ()  # what other releases call it

    def present(self) -> bool:
        if self.probe.startswith("/"):
            return bool(glob.glob(self.probe))
        return shutil.which(self.probe) is not None


def table(group: str) -> list[Package]:
    """The packages of one group of data/packages.toml."""
    data = tomllib.loads((DATA / "packages.toml").read_text())
    if group not in data:
        raise ToolError(f"no package group '{group}'")
    return [
        Package(name, row["probe"], row.get("why", ""), tuple(row.get("others", ()))) for name, row in data[group].items()
    ]


def _apt(arguments: list[str], quiet: bool) -> bool:
    command = ["apt-get", *arguments]
    if os.geteuid() != 0:
        command = ["sudo", "-n", *command]
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    environment.pop("LD_PRELOAD", None)
    output = subprocess.DEVNULL if quiet else None
    try:
        return (
            subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output).returncode
            == 0
        )
    except OSError:
        return False


def can_install() -> bool:
    return shutil.which("apt-get") is not None and (os.geteuid() == 0 or shutil.which("sudo") is not None)


def exists(name: str) -> bool:
    """Whether this release has a package of the name."""
    return (
        shutil.which("apt-cache") is not None
        and subprocess.run(["apt-cache", "show", name], capture_output=True).returncode == 0
    )


def install(names: list[str], say) -> list[str]:  # type: ignore[no-untyped-def]
    """Installs Debian packages; returns those that could not be had.  `say` gets one line before anything happens."""
    if not names:
        return []
    if not can_install():
        say(f"missing: {' '.join(names)} (as root: apt-get install {' '.join(names)})")
        return names
    say(f"installing Debian packages: {' '.join(names)}")
    _apt(["update", "-q"], quiet=True)
    base = ["install", "-y", "-q", "--no-install-recommends"]
    if _apt([*base, *names], quiet=True):
        return []
    # One that does not exist makes apt refuse all: try each alone.
    return [name for name in names if not _apt([*base, name], quiet=True)]


def install_one(names: Sequence[str], there: Callable[[], bool], say) -> None:  # type: ignore[no-untyped-def]
    """Installs in turn those of the names that exist in this release, until `there` says that what they bring is."""
    for name in names:
        if not there() and exists(name):
            install([name], say)


def ensure(group: str, say) -> list[str]:  # type: ignore[no-untyped-def]
    """Brings a group's packages; returns what is still missing afterwards, with nothing raised."""
    wanted = [package for package in table(group) if not package.present()]
    install([package.name for package in wanted], say)
    for package in wanted:
        install_one(package.others, package.present, say)
    left = [package for package in wanted if not package.present()]
    for package in left:
        say(f"could not get {package.name}: {package.why or 'what needs it'} is skipped")
    return [package.name for package in left]
