# SPDX-License-Identifier: MIT
# fakeroot: stat and chown of every program answered by a library that talks to a daemon, preloaded before this library
# (its own doing) and after it.
# needs: fakeroot python3 tar
export PYTHONMALLOC=malloc SUTLER_MANAGER=on
cat > script.py <<'END_SCRIPT'
import os, subprocess, sys
sys.path.insert(0, os.environ["CASE_DIRECTORY"])
import grown

blocks = grown.grow()
print(os.getuid(), grown.threads(), grown.churn(blocks))
for i in range(200):
    os.mkdir(f"d{i}")
    os.chown(f"d{i}", i, i + 1)
print(sum(os.stat(f"d{i}").st_uid for i in range(200)), subprocess.run(["stat", "-c", "%u %g", "d7"], capture_output=True).stdout)
for i in range(200):
    os.rmdir(f"d{i}")
END_SCRIPT
cat > inside.sh <<'END_SCRIPT'
[ -z "$1" ] || export LD_PRELOAD="$1:$LD_PRELOAD"
rm -rf tree && mkdir tree && cd tree
touch a b && mkdir c && mknod c/null c 1 3
chown 7:8 a && chown -R 1000:1001 c && chmod 4755 b
stat -c '%n %u %g %a %F' a b c c/null
cd .. && tar --sort=name --mtime=@0 -cf tree.tar tree && tar --numeric-owner -tvf tree.tar
python3 script.py
END_SCRIPT
fakeroot -- sh -eu inside.sh ''
fakeroot -- sh -eu inside.sh "$CASE_LIBRARY"
