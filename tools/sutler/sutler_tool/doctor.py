# SPDX-License-Identifier: MIT
"""`sutler doctor`: is it active, and if not why; and what this machine offers it, in plain words.

Every line is a finding with a mark: + good, - costs something, ! stops it.  The probes ask the system itself (auxiliary
vector, membarrier, /proc, /sys) and never guess from versions.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Mapping, Optional, Sequence

from rich.console import Console

from . import libraries, live, machine, paths
from .machine import chosen, filtered, read
from .paths import ToolError
from .preload import refusal

AT_RSEQ_FEATURE_SIZE, AT_RSEQ_ALIGN = 27, 28
MM_CID_END = 28
MEMBARRIER = {"x86_64": 324, "aarch64": 283}
MEMBARRIER_RSEQ = 1 << 7
RSEQ = {"x86_64": 334, "aarch64": 293}
AREA_BYTES = 32  # of the library's own, where libc registers none
LIBRARY_WORD = "libsutler"
# Holds 60 MB and tells whether a manager came.
TRIAL = f"""
import os, time
def manager():
    names = (open(f"/proc/self/task/{{task}}/comm").read().strip() for task in os.listdir("/proc/self/task"))
    return "{live.THREAD}" in names
held = [bytes(1000) for _ in range(60000)]
end = time.monotonic() + 3
while not manager() and time.monotonic() < end:
    held.append(bytes(1000))
    time.sleep(0.001)
print(manager())
"""


@dataclass(frozen=True)
class Finding:
    mark: str
    what: str
    meaning: str


def registers_areas(libc: ctypes.CDLL) -> bool:
    """Whether the library registers rseq areas itself: with a glibc that knows of none, on a kernel that does."""
    number = RSEQ.get(platform.machine())
    if number is None or not hasattr(libc, "gnu_get_libc_version"):
        return False
    refused = libc.syscall(ctypes.c_long(number), None, 0, 0, 0) != 0
    return refused and ctypes.get_errno() == errno.EINVAL


def rseq() -> Iterator[Finding]:
    """Restartable sequences and the concurrency id."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.getauxval.restype, libc.getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    feature = int(libc.getauxval(AT_RSEQ_FEATURE_SIZE))
    try:
        registered = ctypes.c_uint.in_dll(libc, "__rseq_size").value
    except ValueError:
        if not registers_areas(libc):
            yield Finding(
                "-",
                "rseq: this C library does not register it",
                "heaps are locked per cpu (sync mode cpu): slower, correct",
            )
            return
        yield Finding("+", "rseq: this C library does not register it, Sutler does", "in each thread's first slow path")
        registered = AREA_BYTES
    if registered == 0:
        yield Finding(
            "-",
            "rseq: not registered in this process",
            "GLIBC_TUNABLES may have switched it off, or the kernel lacks it; sync mode cpu is used",
        )
        return
    yield Finding(
        "+",
        f"rseq: registered ({registered} bytes, kernel offers {feature or 20})",
        "malloc and free need no lock and no atomic instruction",
    )
    if feature >= MM_CID_END and (registered >= MM_CID_END or registered in (20, 32)):
        yield Finding("+", "mm_cid: the kernel gives concurrency ids", "heaps are as many as threads that run at once")
    else:
        yield Finding("-", "mm_cid: not available", "heaps go by cpu number instead")


def seccomp(explicit: Optional[str]) -> Iterator[Finding]:
    """What a filter costs here; a trial says whether SUTLER_MANAGER=on may be set, as the filter itself cannot be read."""
    if not filtered():
        yield Finding("+", "seccomp: no filter is in force", "")
        return
    if os.environ.get("SUTLER_MANAGER") == "on":
        yield Finding("+", "seccomp: a filter is in force, and SUTLER_MANAGER=on vouches for it", "")
        return
    what = "seccomp: a filter is in force, so there is no manager"
    try:
        under = libraries.sutler(paths.library(explicit, build=False), {"SUTLER_MANAGER": "on"})
        done = libraries.run_under(under, [sys.executable, "-c", TRIAL])
    except (ToolError, subprocess.TimeoutExpired, OSError) as error:
        yield Finding("-", what, f"whether it would let one run was not found out: {error}")
        return
    if done.returncode < 0:
        why = f"it ended a trial program that had one (by {signal.Signals(-done.returncode).name}): leave it so"
    elif done.stdout.strip() == "True":
        why = "it let one run in a trial program: set SUTLER_MANAGER=on, and memory goes back while a program sleeps, too"
    else:
        why = "in a trial program with SUTLER_MANAGER=on none came either"
    yield Finding("-", what, why)


def membarrier() -> Iterator[Finding]:
    if filtered() and os.environ.get("SUTLER_MANAGER") != "on":
        yield Finding("-", "membarrier: not asked for under a filter", "each thread purges the heaps it runs on")
        return
    number = MEMBARRIER.get(platform.machine())
    if number is None:
        yield Finding("-", f"membarrier: not probed on {platform.machine()}", "")
        return
    libc = ctypes.CDLL(None, use_errno=True)
    commands = libc.syscall(ctypes.c_long(number), 0, 0, 0)
    if commands < 0:
        yield Finding(
            "-",
            f"membarrier: {os.strerror(ctypes.get_errno())}",
            "taking over another cpu's heap is not possible: sync mode cpu is used",
        )
    elif commands & MEMBARRIER_RSEQ:
        yield Finding("+", "membarrier: rseq fences available", "heaps can be taken over while their threads run")
    else:
        yield Finding(
            "-", "membarrier: no rseq fences", "taking over another cpu's heap is not possible: sync mode cpu is used"
        )


def memory() -> Iterator[Finding]:
    enabled = chosen(read("/sys/kernel/mm/transparent_hugepage/enabled"))
    meaning = {
        "always": "the kernel uses them by itself; memory that is given back piecewise stays in use",
        "madvise": "they are used where the allocator asks",
        "never": "they are off: growing programs pay one fault for every page",
    }
    yield Finding(
        "-" if enabled == "never" else "+",
        f"transparent huge pages: {enabled or 'not there'}",
        meaning.get(enabled or "", ""),
    )
    policy = read("/proc/sys/vm/overcommit_memory") or "?"
    words = {
        "0": "heuristic: reserving address space costs nothing",
        "1": "always: reserving address space costs nothing",
        "2": "strict: every writable reservation counts; the allocator opens memory in steps",
    }
    yield Finding("-" if policy == "2" else "+", f"overcommit: {policy}", words.get(policy, ""))
    free = machine.meminfo("MemAvailable") >> 20
    yield Finding("+", f"memory: {machine.meminfo('MemTotal') >> 20} MiB, {free} MiB free", "")
    maps = read("/proc/sys/vm/max_map_count")
    if maps and int(maps) < 65530:
        yield Finding("-", f"max_map_count: {maps}", "low: memory may be given back in larger pieces only")


def limits() -> Iterator[Finding]:
    rows = (
        (resource.RLIMIT_AS, "address space (ulimit -v)", "the allocator reserves less at a time"),
        (resource.RLIMIT_DATA, "data (ulimit -d)", "writable memory is limited"),
        (
            resource.RLIMIT_NPROC,
            "processes (ulimit -u)",
            "when it is reached there is no manager; its work is done inline",
        ),
        (resource.RLIMIT_MEMLOCK, "locked memory (ulimit -l)", ""),
    )
    for number, name, meaning in rows:
        soft, _ = resource.getrlimit(number)
        if soft != resource.RLIM_INFINITY and number != resource.RLIMIT_MEMLOCK:
            amount = f"{soft >> 20} MiB" if number != resource.RLIMIT_NPROC else str(soft)
            yield Finding(
                "-" if number != resource.RLIMIT_NPROC or soft < 200 else "+", f"limit on {name}: {amount}", meaning
            )


def _cgroup_file(name: str) -> Optional[str]:
    for line in (read("/proc/self/cgroup") or "").splitlines():
        if line.startswith("0::"):
            found = read(f"/sys/fs/cgroup{line[3:]}/{name}") or read(f"/sys/fs/cgroup/{name}")
            return found
    return None


def processors() -> Iterator[Finding]:
    count = len(os.sched_getaffinity(0))
    quota = None
    text = _cgroup_file("cpu.max")
    if text and not text.startswith("max"):
        allowed, period = (int(part) for part in text.split()[:2])
        quota = allowed / period
    if count < 2:
        yield Finding("-", "processors: 1", "there is no spare core: the manager stays out of the way")
    elif quota is not None and quota < 2:
        yield Finding(
            "-",
            f"processors: {count}, but the cgroup allows {quota:g}",
            "there is no spare core: the manager stays out of the way",
        )
    else:
        yield Finding("+", f"processors: {count}", "enough for a manager beside the program")
    top, high = _cgroup_file("memory.max"), _cgroup_file("memory.high")
    for name, value in (("memory.max", top), ("memory.high", high)):
        if value and value != "max":
            yield Finding("-", f"cgroup {name}: {int(value) >> 20} MiB", "reserves shrink when use comes near it")


def deep_binding(settings: Mapping[str, str]) -> Iterator[Finding]:
    """What happens to libraries loaded with RTLD_DEEPBIND."""
    if settings.get("SUTLER_DEEPBIND") == "off":
        yield Finding(
            "-",
            "deep binding: off",
            "libraries loaded with RTLD_DEEPBIND (PHP's extensions) use libc's malloc: a block that changes sides ends the program",
        )
    else:
        yield Finding(
            "+",
            "deep binding: on",
            "libraries loaded with RTLD_DEEPBIND get this malloc like everybody; SUTLER_DEEPBIND=off leaves them libc's",
        )


def environment() -> Iterator[Finding]:
    for name, value in sorted(os.environ.items()):
        if name.startswith("SUTLER_") and name not in libraries.OWN_SETTINGS:
            yield Finding("+", f"{name}={value}", "set in this shell; every program under the library reads it")
    preload = os.environ.get("LD_PRELOAD")
    if preload:
        yield Finding("-", f"LD_PRELOAD={preload}", "set in this shell; a malloc named there before Sutler's wins")
    if "glibc.pthread.rseq=0" in os.environ.get("GLIBC_TUNABLES", ""):
        yield Finding("-", "GLIBC_TUNABLES switches rseq off", "sync mode cpu is used")


def library(explicit: Optional[str]) -> Iterator[Finding]:
    try:
        path = paths.library(explicit, build=False)
        why = libraries.works(libraries.sutler(path))
    except ToolError as error:
        yield Finding("!", f"library: {error}", "")
        return
    if why:
        yield Finding("!", f"library: {path}", f"does not serve malloc here: {why}")
    else:
        yield Finding("+", f"library: {path}", "preloaded into a test program it serves malloc")


def process(pid: int) -> Iterator[Finding]:
    """Whether a running process uses the library."""
    base = Path(f"/proc/{pid}")
    if not base.exists():
        raise ToolError(f"there is no process {pid}")
    try:
        maps = (base / "maps").read_text()
        words = (base / "environ").read_bytes().split(b"\0")
    except PermissionError as error:
        raise ToolError(f"process {pid} may not be looked into: be its user, or root with the right to trace it") from error
    name = read(f"/proc/{pid}/comm") or "?"
    settings = {key: value for key, _, value in (word.decode(errors="replace").partition("=") for word in words)}
    loaded = sorted({line.split()[-1] for line in maps.splitlines() if LIBRARY_WORD in line.rsplit("/", 1)[-1]})
    tasks = [read(f"/proc/{pid}/task/{task}/comm") for task in os.listdir(base / "task")]
    preload = [item for item in settings.get("LD_PRELOAD", "").replace(":", " ").split() if item]
    if loaded:
        first = next((item for item in preload if "alloc" in Path(item).name or LIBRARY_WORD in Path(item).name), "")
        if first and LIBRARY_WORD not in Path(first).name:
            yield Finding(
                "!",
                f"process {pid} ({name}): {loaded[0]} is loaded, but {first} comes first",
                "malloc is served by the other library",
            )
        else:
            which = "Sutler's hardened library" if "hardened" in Path(loaded[0]).name else "Sutler"
            yield Finding("+", f"process {pid} ({name}): {loaded[0]} is loaded", f"malloc is served by {which}")
        running = live.THREAD in tasks
        usual = "it starts only when a program grows or calls often, and stays out of programs it cannot help"
        barred = "a seccomp filter is in force: there is none, but with SUTLER_MANAGER=on under one that was inherited"
        yield Finding(
            "+",
            f"manager: {'running' if running else 'not running'}",
            "" if running else barred if filtered(str(pid)) else usual,
        )
        yield from deep_binding(settings)
        for key in sorted(settings):
            if key.startswith("SUTLER_"):
                yield Finding("+", f"{key}={settings[key]}", "in the process's environment")
        return
    yield from not_loaded(pid, name, settings)


def not_loaded(pid: int, name: str, settings: dict[str, str]) -> Iterator[Finding]:
    """Why not."""
    title = f"process {pid} ({name}): Sutler is not loaded"
    preload = settings.get("LD_PRELOAD", "")
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        program = ""
    if LIBRARY_WORD not in preload:
        yield Finding(
            "!", title, "its environment has no LD_PRELOAD with the library: start it with ./sutler run -- ..."
        )
        return
    missing = [item for item in preload.replace(":", " ").split() if LIBRARY_WORD in item and not Path(item).exists()]
    why = refusal(program) if program else ""
    if missing:
        yield Finding("!", title, f"LD_PRELOAD names {missing[0]}, which does not exist")
    elif why:
        yield Finding("!", title, why)
    else:
        yield Finding(
            "!",
            title,
            "LD_PRELOAD names it, but the dynamic linker left it out: the process may have changed its user, or lost the "
            "right to read the file",
        )


def program(words: Sequence[str]) -> Iterator[Finding]:
    why = refusal(words[0])
    if why:
        yield Finding("!", f"program: {words[0]}", why)
    else:
        yield Finding(
            "+",
            f"program: {shutil.which(words[0]) or words[0]}",
            "a preloaded library can reach it: ./sutler run -- " + " ".join(words),
        )


def findings(target: Sequence[str], explicit: Optional[str]) -> list[Finding]:
    """Everything the verb prints."""
    found: list[Finding] = []
    if len(target) == 1 and target[0].isdigit():
        found += process(int(target[0]))
    elif target:
        found += program(target)
    if not (len(target) == 1 and target[0].isdigit()):
        found += library(explicit)
        found += seccomp(explicit)
        found += deep_binding(os.environ)
    for probe in (rseq, membarrier, processors, memory, limits, environment):
        found += probe()
    return found


def doctor(console: Console, target: Sequence[str], explicit: Optional[str]) -> int:
    """The verb: 1 when something stops the library from being active."""
    styles = {"+": "green", "-": "yellow", "!": "bold red"}
    found = findings(target, explicit)
    for item in found:
        console.print(
            f"{item.mark} {item.what}", style=styles[item.mark], markup=False, highlight=False, soft_wrap=True
        )
        if item.meaning:
            console.print(f"    {item.meaning}", style="dim", markup=False, highlight=False, soft_wrap=True)
    return 1 if any(item.mark == "!" for item in found) else 0
