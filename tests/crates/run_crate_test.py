#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles one test of another allocator from its published package and runs it with the library preloaded.

The packages come from cargo, into the build tree, and nothing of them is copied into the source tree.  What we add is a
seam (testlib.cpp, include/test/jemalloc_test.h): our own code that lets those tests call plain malloc.

  run_crate_test.py --work BUILDDIR --lib LIBRARY snmalloc func/memory
"""

import argparse
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

MANIFEST = """[package]
name = "fetch"
version = "0.0.0"
edition = "2021"

[dependencies]
snmalloc-sys = "=0.7.6"
tikv-jemalloc-sys = "=0.7.1"
"""


class Skip(Exception):
    pass


def fetch(work: pathlib.Path) -> pathlib.Path:
    """The folder with the packages' sources, fetched once; several tests may come at the same time."""
    vendor = work / "vendor"
    work.mkdir(parents=True, exist_ok=True)
    with open(work / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manifest = work / "Cargo.toml"
        if (work / "done").exists() and manifest.read_text(encoding="utf-8") == MANIFEST:
            return vendor
        if shutil.which("cargo") is None:
            raise Skip("no cargo to fetch the packages")
        manifest.write_text(MANIFEST, encoding="utf-8")
        (work / "src").mkdir(exist_ok=True)
        (work / "src" / "lib.rs").touch()
        run = subprocess.run(
            ["cargo", "vendor", "--quiet", "vendor"], cwd=work, capture_output=True, text=True, timeout=300, check=False
        )
        if run.returncode != 0:
            raise Skip(f"cargo cannot fetch the packages: {run.stderr.strip()[-300:]}")
        (work / "done").touch()
    return vendor


def build(suite: str, test: str, vendor: pathlib.Path, work: pathlib.Path) -> pathlib.Path:
    program = work / f"{suite}-{test.replace('/', '-')}-{os.getpid()}"
    common = ["-O2", "-g", "-w", "-fno-builtin", "-pthread"]
    if suite == "snmalloc":
        source = vendor / "snmalloc-sys" / "upstream" / "src"
        files = sorted((source / "test" / test).glob("*.cc"))
        command = ["g++", "-std=c++20", "-mcx16", "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1", *common, f"-I{source}", *map(str, files), str(HERE / "testlib.cpp")]
    else:
        file = vendor / "tikv-jemalloc-sys" / "jemalloc" / "test" / test
        command = ["gcc", "-std=gnu17"] if file.suffix == ".c" else ["g++", "-std=c++17"]
        command += [*common, f"-I{HERE / 'include'}", str(file)]
    run = subprocess.run([*command, "-o", str(program), "-latomic"], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        print(run.stderr[-6000:])
        raise SystemExit(f"FAILED: {suite} {test} does not compile")
    return program


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--lib", default=os.environ.get("TEST_LIBRARY", ""))
    parser.add_argument("suite", choices=["snmalloc", "jemalloc"])
    parser.add_argument("test")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    try:
        vendor = fetch(options.work)
    except Skip as reason:
        print(f"SKIPPED: {reason}")
        return 77
    program = build(options.suite, options.test, vendor, options.work)
    try:
        run = subprocess.run(
            [str(program), *options.arguments], env=dict(os.environ, LD_PRELOAD=options.lib), capture_output=True,
            text=True, errors="replace", timeout=250, check=False,
        )
    finally:
        program.unlink()
    print(run.stdout[-3000:], run.stderr[-3000:])
    if "sutler: " in run.stderr:
        print("FAILED: the library reported an error")
        return 1
    if run.returncode < 0:
        print(f"FAILED: died by {signal.Signals(-run.returncode).name}")
        return 1
    return 1 if run.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
