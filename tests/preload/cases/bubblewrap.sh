# SPDX-License-Identifier: MIT
# bubblewrap: everything unshared, no capability left, a process id 1 of its own, no /sys; with /proc and without.
# needs: bwrap python3
bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev true 2> /dev/null || { echo "bwrap may not unshare here"; exit 77; }
export PYTHONMALLOC=malloc SUTLER_MANAGER=on
cat > script.py <<'END_SCRIPT'
import os, subprocess, sys
sys.path.insert(0, os.environ["CASE_DIRECTORY"])
if not os.path.exists("/proc/self"):
    os.environ["CASE_LIBRARY"] = ""
import grown

blocks = grown.grow()
print(os.getpid() < 5, grown.threads(), grown.churn(blocks))
print([subprocess.run(["sort"], input=b"c\nb\na\n", capture_output=True).stdout for _ in range(5)])
END_SCRIPT
python=$(python3 -c 'import sys; print(sys.executable)')
inside() {
    bwrap --unshare-all --die-with-parent --new-session --cap-drop ALL --ro-bind / / --dev /dev --bind "$PWD" "$PWD" \
        --tmpfs /sys "$@" "$python" script.py
}
inside --proc /proc
inside --proc /proc --as-pid-1
inside --tmpfs /proc
