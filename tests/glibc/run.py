#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""glibc's own tests of malloc, with the library preloaded and without: the same end, but for expected.toml.

    run.py BUILD-FOLDER [--lib LIBRARY] [--only NAME]

The source is the distribution's (fetch.py), compiled outside of glibc's build with headers of our own in place of its
test framework.  A difference that expected.toml does not name fails, as does one it names and that is gone.  Without
the source: skipped.
"""

import argparse
import concurrent.futures
import fcntl
import glob
import hashlib
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib

import fetch

HERE = pathlib.Path(__file__).parent
PATIENCE = 3  # times glibc's own limits: other tests run beside
DEBUGGING = "libc_malloc_debug.so.0"
# As glibc's makefile runs them.
ENVIRONMENT = {
    "tst-mxfast": {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0"},
    "tst-malloc-check": {"MALLOC_CHECK_": "3", "LD_PRELOAD": DEBUGGING},
    "tst-malloc-usable": {"MALLOC_CHECK_": "3", "LD_PRELOAD": DEBUGGING},
    "tst-malloc-usable-tunables": {"GLIBC_TUNABLES": "glibc.malloc.check=3", "LD_PRELOAD": DEBUGGING},
    "tst-compathooks-on": {"LD_PRELOAD": DEBUGGING},
    "tst-mallocstate": {"LD_PRELOAD": DEBUGGING},
}
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-w", "-DTEST_NO_MALLOPT", f"-DTEST_PATIENCE={PATIENCE}"]
SIGNALS = {number.value: number.name for number in signal.Signals}


def compile_all(source: pathlib.Path, out: pathlib.Path) -> tuple[list[str], dict[str, str]]:
    """Names of the programs, and of what could not be built the first complaint."""
    own = HERE / "include"
    flags = [*FLAGS, "-include", f"{own}/prelude.h", f"-I{own}", f"-I{source}", f"-I{source}/headers"]
    parts = [name for stem in ("dynarray", "alloc_buffer", "scratch_buffer") for name in glob.glob(f"{source}/malloc/{stem}_*.c")]
    names = sorted(pathlib.Path(name).stem for name in glob.glob(f"{source}/malloc/tst-*.c"))
    # Parts of others, and static programs, into which nothing can be preloaded.
    names = [name for name in names if not name.startswith("tst-interpose-aux") and name != "tst-interpose-skeleton"]
    names = [name for name in names if "static" not in name]
    out.mkdir(exist_ok=True)
    archive = out / "parts.a"

    def compile_part(part: str) -> str:
        made = str(out / f"{pathlib.Path(part).stem}.o")
        subprocess.run(["cc", *flags, "-c", part, "-o", made], capture_output=True, check=False)
        return made

    def compile_test(name: str) -> str:
        more = [f"{source}/malloc/{name.replace('interpose', 'interpose-aux')}.c"] if "interpose" in name else []
        more += glob.glob(f"/lib/*/{DEBUGGING}") if name == "tst-mallocstate" else []
        more = [path for path in more if os.path.exists(path)]
        command = ["cc", *flags, f"{source}/malloc/{name}.c", *more, str(archive), "-pthread", "-o", str(out / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        complaints = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        return "" if done.returncode == 0 else (complaints or ["the compiler refuses it"])[0]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = [path for path in pool.map(compile_part, parts) if os.path.exists(path)]
        subprocess.run(["ar", "rcs", str(archive), *made], capture_output=True, check=False)
        said = dict(zip(names, pool.map(compile_test, names)))
    return [name for name in names if not said[name]], {name: text for name, text in said.items() if text}


def build(folder: pathlib.Path) -> tuple[list[pathlib.Path], dict[str, str]]:
    """The modes share the folder: the first of them compiles, into a folder named after what it compiled with."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [*sorted((HERE / "include").rglob("*.[ch]")), HERE / "run.py", HERE / "fetch.py"]
    out = folder / hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()[:16]
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "built.json").exists():
            names, not_built = compile_all(fetch.fetch(folder), out)
            (out / "built.json").write_text(json.dumps([names, not_built]), encoding="utf-8")
        names, not_built = json.loads((out / "built.json").read_text(encoding="utf-8"))
    return [out / name for name in names], not_built


def outcome(status: int) -> str:
    if status < 0:
        return f"ends by {SIGNALS.get(-status, -status)}"
    return {0: "passes", 1: "fails", 77: "cannot run", 124: "hangs"}.get(status, f"ends with {status}")


def run_one(program: pathlib.Path, library: str | None) -> tuple[str, str]:
    """How the program ends, and the last it said."""
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "TEST_EXPECT_SUTLER")}
    wanted = dict(ENVIRONMENT.get(program.name, {}))
    preload = [name for name in (library, wanted.pop("LD_PRELOAD", None)) if name]
    tunables = [text for text in (environment.get("GLIBC_TUNABLES"), wanted.pop("GLIBC_TUNABLES", None)) if text]
    environment |= wanted
    if preload:
        environment["LD_PRELOAD"] = ":".join(preload)
    if tunables:
        environment["GLIBC_TUNABLES"] = ":".join(tunables)
    with tempfile.TemporaryDirectory(prefix="sutler-glibc-") as folder, open(f"{folder}/said", "w+", errors="replace") as said:
        process = subprocess.Popen(
            [str(program)], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        try:
            status = process.wait(timeout=150 * PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = 124
        said.seek(0)
        return outcome(status), "\n".join(f"    {line}" for line in said.read()[-3000:].splitlines()[-8:])


def judge(names: list[str], alone: dict, beside: dict, expected: dict, is_listed_version: bool) -> int:
    """Prints what is not as the list says, and counts it."""
    wrong = 0
    for name in names:
        (without, _), (with_library, said) = alone[name], beside[name]
        row = expected.get(name)
        if without != with_library and (row is None or row["outcome"] != with_library):
            wrong += 1
            print(f"FAILED: {name} {without} alone and {with_library} with the library\n{said}")
        elif without == with_library and row is not None and is_listed_version:
            wrong += 1
            print(f"FAILED: {name} {without} with and without the library: its row in expected.toml is out of date")
        elif row is not None:
            print(f"as expected: {name} {with_library}: {row['reason']}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--lib", default=os.environ.get("TEST_LIBRARY"))
    parser.add_argument("--only")
    options = parser.parse_args()
    missing = [name for name in ("cc", "ar", "apt-get", "dpkg-query") if not shutil.which(name)]
    if missing:
        print(f"SKIPPED: no {missing[0]}")
        return 77
    try:
        programs, not_built = build(options.folder.absolute())
    except fetch.Unavailable as why:
        print(f"SKIPPED: glibc's source cannot be had: {why}")
        return 77
    listed = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    is_listed_version = platform.libc_ver()[1] == listed["glibc"]
    programs = [program for program in programs if options.only in (None, program.name)]
    names = [program.name for program in programs]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        beside = dict(zip(names, pool.map(lambda program: run_one(program, os.path.realpath(options.lib)), programs)))
        alone = dict(zip(names, pool.map(lambda program: run_one(program, None), programs)))
    wrong = judge(names, alone, beside, listed["test"], is_listed_version)
    for name, text in not_built.items():
        print(f"{'FAILED: ' * is_listed_version}{name} does not compile here: {text}")
        wrong += is_listed_version
    print(f"{len(names)} tests of glibc {platform.libc_ver()[1]}, {wrong} not as expected.toml for glibc {listed['glibc']} says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
