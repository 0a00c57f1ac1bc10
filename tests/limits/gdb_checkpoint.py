#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gdb's checkpoint, which is a fork of the debugged program whose child gdb sets back to where the program stood.

gdb refuses it in a process of several threads, so with the manager there it says so and the program goes on.  Without
one, or with it parked, program and checkpoint both get to their end.  The child never returns from fork: handlers for
the child do not run in it.
"""

import os
import re
import shutil
import subprocess
import sys

REFUSAL = "checkpoint: can't checkpoint multiple threads."
END = "gone through to the end"
SCENES = {
    "off": ("off", ["checkpoint", "info checkpoints", "continue", "continue"]),
    "on": ("on", ["checkpoint", "continue"]),
    "parked": ("on", ["call (void)sutler_manager_park()", "checkpoint", "info checkpoints",
                      "call (void)sutler_manager_resume()", "continue", "call (void)sutler_manager_resume()", "continue"]),
}  # fmt: skip


def run(program: str, environment: str, commands: list[str]) -> str:
    begin = ["set pagination off", "set confirm off", f"set exec-wrapper env {environment}", "break grown", "run"]
    command = ["gdb", "-nx", "-batch", *(f"-ex={line}" for line in begin + commands), program]
    process = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=100, check=False)
    return process.stdout + process.stderr


def main() -> int:
    if shutil.which("gdb") is None:
        print("SKIPPED: no gdb")
        return 77
    bare = run(sys.argv[1], "LD_PRELOAD=", SCENES["off"][1])
    if bare.count(END) != 2:
        print("SKIPPED: gdb cannot trace here or go back to a checkpoint, without the library either")
        print("\n".join(bare.splitlines()[-5:]))
        return 77
    library = f"LD_PRELOAD={os.environ.get('TEST_LIBRARY', '')} TEST_EXPECT_SUTLER=1"
    failed = 0
    for name, (manager, commands) in SCENES.items():
        said = run(sys.argv[1], f"{library} SUTLER_MANAGER={manager}", commands)
        refused, made = REFUSAL in said, re.search(r"^ +1 .*process \d+", said, re.M) is not None
        wanted = (True, False, 1) if name == "on" else (False, True, 2)
        if (refused, made, said.count(END)) != wanted:
            failed = 1
            print(f"FAILED: manager {name}: refused {refused}, made {made}, {said.count(END)} of {wanted[2]} ends")
            print("\n".join(said.splitlines()[-15:]))
        else:
            print(f"manager {name}: as it should be")
    return failed


if __name__ == "__main__":
    sys.exit(main())
