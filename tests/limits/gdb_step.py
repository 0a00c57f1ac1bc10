#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Single-steps gdb over malloc and free, instruction by instruction, and expects the program to get to its end.

gdb's own Python would do, but not every gdb has one: the script is plain gdb commands.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

SCRIPT = """set pagination off
set confirm off
set breakpoint pending on
set disable-randomization on
set exec-wrapper env LD_PRELOAD={library}
set print thread-events off
break begin
break end
run
delete 1
set $steps = 0
while $steps < {steps}
  stepi
  set $steps = $steps + 1
end
printf "steps=%d\\n", $steps
delete
continue
quit
"""


def main() -> int:
    program, steps = sys.argv[1], sys.argv[2]
    library = os.environ.get("TEST_LIBRARY", "")
    if shutil.which("gdb") is None:
        print("SKIPPED: no gdb")
        return 77
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.write(SCRIPT.format(library=library, steps=steps))
        script.flush()
        run = subprocess.run(
            ["gdb", "-nx", "-batch", "-x", script.name, program],
            capture_output=True, text=True, errors="replace", timeout=280, check=False,
        )
    if re.search(r"ptrace.*(Operation not permitted|Function not implemented)", run.stderr + run.stdout):
        print("SKIPPED: gdb may not trace here")
        return 77
    tail = "\n".join((run.stdout + run.stderr).splitlines()[-12:])
    if f"steps={steps}" not in run.stdout or "stepped to the end" not in run.stdout:
        print(f"FAILED: the program did not get through {steps} single steps\n{tail}")
        return 1
    if not re.search(r"exited normally", run.stdout):
        print(f"FAILED: the program did not exit normally\n{tail}")
        return 1
    print(f"{steps} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
