#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs the statically linked program set-uid to another user and starts it with orders it must not take."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile


def main() -> int:
    if os.geteuid() != 0:
        print("SKIPPED: needs root to make a set-uid program")
        return 77
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        print("SKIPPED: no user nobody")
        return 77
    # Beside the build, not in /tmp, which is often mounted nosuid.
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(sys.argv[1]))) as folder:
        program = os.path.join(folder, "secure")
        shutil.copy(sys.argv[1], program)
        os.chown(program, nobody.pw_uid, nobody.pw_gid)
        os.chmod(program, 0o4755)
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "SUTLER_SYNC": "nonsense",
            "SUTLER_ON_ERROR": "report",
            "SUTLER_STATS": "1",
        }
        run = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60, check=False)
    print(run.stdout, run.stderr)
    if run.returncode != 0:
        return 77 if run.returncode == 77 else 1
    if run.stderr:
        print("FAILED: the library answered its environment")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
