#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a command while a system-wide setting has another value, and puts the old one back whatever happens.

  sysctl.py vm.overcommit_memory=2 PROGRAM ARGS...
  sysctl.py /sys/kernel/mm/transparent_hugepage/enabled=never PROGRAM ARGS...

Such a setting touches every process on the machine, so this does nothing (skips) unless TEST_SYSCTL=1 says that
the machine is ours to change.
"""

import os
import signal
import subprocess
import sys


def stop(*_: object) -> None:
    raise SystemExit(1)


def main() -> int:
    name, value = sys.argv[1].split("=")
    path = name if name.startswith("/") else "/proc/sys/" + name.replace(".", "/")
    if os.environ.get("TEST_SYSCTL") != "1":
        print(f"SKIPPED: {name} is the whole machine's; set TEST_SYSCTL=1 to allow changing it")
        return 77
    with open(path, encoding="ascii") as file:
        before = file.read().strip()
    if "[" in before:  # a choice: "always [madvise] never"
        before = before[before.index("[") + 1 : before.index("]")]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    environment = dict(os.environ, LD_PRELOAD=os.environ["TEST_LIBRARY"])
    try:
        try:
            with open(path, "w", encoding="ascii") as file:
                file.write(value)
        except OSError as error:
            print(f"SKIPPED: {name} cannot be changed: {error}")
            return 77
        return subprocess.run(sys.argv[2:], env=environment, timeout=100, check=False).returncode
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(before)


if __name__ == "__main__":
    sys.exit(main())
