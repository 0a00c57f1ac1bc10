# SPDX-License-Identifier: MIT
"""What machine a figure was measured on, in the few words that change figures."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional


def read(path: str) -> Optional[str]:
    """A small file of /proc or /sys, or None."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def filtered(pid: str = "self") -> bool:
    """Whether a seccomp filter is in force."""
    status = read(f"/proc/{pid}/status") or ""
    return any(line.split()[1:] not in ([], ["0"]) for line in status.splitlines() if line.startswith("Seccomp:"))


def chosen(text: Optional[str]) -> Optional[str]:
    """The chosen word of `always [madvise] never`."""
    if text and "[" in text:
        return text[text.index("[") + 1 : text.index("]")]
    return text


def cpu_model() -> str:
    for line in (read("/proc/cpuinfo") or "").splitlines():
        if line.startswith(("model name", "Model")):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def meminfo(name: str) -> int:
    """A row of /proc/meminfo in bytes; 0 when absent."""
    for line in (read("/proc/meminfo") or "").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return 0


def git_revision(folder: Optional[Path]) -> str:
    if folder is None:
        return ""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=folder, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def describe(folder: Optional[Path] = None) -> dict[str, str]:
    """The description that stands beside every table."""
    virtual = "yes" if "hypervisor" in (read("/proc/cpuinfo") or "") else "no"
    libc = platform.libc_ver()
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu_model(),
        "processors": str(len(os.sched_getaffinity(0))),
        "virtual machine": virtual,
        "memory": f"{meminfo('MemTotal') / (1 << 30):.1f} GiB",
        "kernel": platform.release(),
        "libc": " ".join(libc) if libc[0] else "unknown",
        "system": (read("/etc/os-release") or "").partition('PRETTY_NAME="')[2].partition('"')[0],
        "page size": str(os.sysconf("SC_PAGE_SIZE")),
        "transparent huge pages": chosen(read("/sys/kernel/mm/transparent_hugepage/enabled")) or "unknown",
        "overcommit": read("/proc/sys/vm/overcommit_memory") or "unknown",
        "source": git_revision(folder),
    }
