# SPDX-License-Identifier: MIT
"""The source of the C library that this machine runs, from where its packages come from, unpacked as far as needed.

apt fetches and checks it, with lists and caches of its own below the folder given: nothing of the system's is changed,
and no privilege is needed.  What Debian patches is not applied: the tests are those of the release.
"""

import glob
import os
import pathlib
import subprocess
import tarfile

# Headers of glibc's that are not among its public ones, from whichever folder of it has them.
HEADERS = ("include/array_length.h", "include/alloc_buffer.h", "include/scratch_buffer.h", "include/libc-diag.h",
           "include/libc-pointer-arith.h", "include/intprops.h", "include/intprops-internal.h",
           "sysdeps/generic/malloc-size.h", "sysdeps/generic/malloc-alignment.h")  # fmt: skip
KEYRINGS = {"Debian": "debian-archive-keyring.gpg", "Ubuntu": "ubuntu-archive-keyring.gpg"}
SKELETON = "".join(f"#include <support/{name}>\n" for name in ("support.h", "temp_file.h", "xthread.h", "test-driver.c"))


class Unavailable(Exception):
    """Why the source cannot be had here."""


def run(*command: str, folder: pathlib.Path | None = None, seconds: float = 300) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        raise Unavailable(f"{command[0]} {command[-1]}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return done.stdout


def source_list() -> str:
    """The distribution's own archives, as sources, by the lists of packages that apt has."""
    lines = run("apt-get", "indextargets", "--format", "$(REPO_URI)|$(CODENAME)|$(COMPONENT)|$(ORIGIN)", "Created-By: Packages")
    rows = []
    for line in dict.fromkeys(lines.split()):
        fields = line.split("|")
        if len(fields) == 4 and fields[3] in KEYRINGS:
            ring = f"/usr/share/keyrings/{KEYRINGS[fields[3]]}"
            rows.append(f"deb-src {f'[signed-by={ring}] ' if os.path.exists(ring) else ''}{fields[0]} {fields[1]} {fields[2]}\n")
    if not rows:
        raise Unavailable("apt has no lists of a distribution's packages")
    return "".join(rows)


def download(folder: pathlib.Path) -> pathlib.Path:
    """The archive of the release."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text(source_list(), encoding="utf-8")
    options = [f"Dir::Etc::sourcelist={folder}/sources.list", "Dir::Etc::sourceparts=-", f"Dir::State::lists={folder}/lists",
               f"Dir::Cache={folder}/cache", "APT::Sandbox::User=", "Acquire::http::Timeout=20", "Acquire::Retries=1"]  # fmt: skip
    apt = ["apt-get", "-q", *(f"-o{option}" for option in options)]
    run(*apt, "update")
    version = run("dpkg-query", "-W", "-f", "${source:Version}", "libc6")
    try:
        run(*apt, "source", "--download-only", f"glibc={version}", folder=folder)
    except Unavailable:  # replaced in the archive by a later one
        run(*apt, "source", "--download-only", "glibc", folder=folder)
    found = sorted(glob.glob(f"{folder}/glibc_*.orig.tar.*[!c]"))
    if not found:
        raise Unavailable("apt brought no archive")
    return pathlib.Path(found[-1])


def unpack(archive: pathlib.Path, source: pathlib.Path) -> None:
    """glibc's malloc folder, and the few headers, in folders of those names."""
    with tarfile.open(archive) as packed:
        for member in packed:
            inside = member.name.partition("/")[2]
            if not member.isfile() or not (inside.startswith("malloc/") or inside in HEADERS):
                continue
            target = source / (inside if inside.startswith("malloc/") else f"headers/{os.path.basename(inside)}")
            target.parent.mkdir(parents=True, exist_ok=True)
            taken = packed.extractfile(member)
            assert taken is not None
            target.write_bytes(taken.read())
    (source / "test-skeleton.c").write_text(SKELETON, encoding="utf-8")


def fetch(folder: pathlib.Path) -> pathlib.Path:
    """The folder of the unpacked source, fetched if it is not there yet."""
    source, done = folder / "source", folder / "unpacked"
    if not done.exists():
        unpack(download(folder), source)
        done.touch()
    return source
