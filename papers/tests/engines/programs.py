#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small runs of real programs, without and with an engine preloaded; same output, same status, nothing said on stderr.

The cases are short because the pass-through engine asks another thread at every malloc; tests/preload/cases holds the long
ones, and compare.py there runs them under any library (--lib).  The papers' programs (papers/programs) are here in both
lengths: `paper` and, at the length they have in the benchmarks, `paper-long`."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

CASES = {
    "bash": r"""declare -A n; for ((i = 0; i < 1500; i++)); do k="k$((i * 7919 % 101))"; n[$k]+="$i,"; done
t=0; for k in "${!n[@]}"; do t=$((t + ${#n[$k]})); done; echo "${#n[@]} $t"
for i in 1 2 3 4 5; do x=$(for ((k = 0; k < 50; k++)); do echo $((k * i)); done | sort -n | tail -1); echo "$i $x"; done""",
    "gawk": r"""gawk 'BEGIN { srand(3); for (i = 0; i < 4000; i++) { w = "w" int(rand() ^ 3 * 900); n[w]++; s = s w; a[i] = w i }
PROCINFO["sorted_in"] = "@val_num_desc"; for (w in n) if (c++ < 5) print w, n[w]; gsub(/w1/, "<&>", s); print length(s)
asort(a); print a[1], a[4000] }'""",
    "python3": r"""PYTHONMALLOC=malloc PYTHONHASHSEED=0 python3 -c '
import json, threading
tree = {f"k{i}": {"list": list(range(i % 20)), "text": "x" * (i % 300)} for i in range(1500)}
assert json.loads(json.dumps(tree)) == tree
results = [0] * 4
def work(n):
    results[n] = sum(len(bytes(i % 700)) for i in range(3000))
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(json.dumps(tree)), results)'""",
    "gcc": r"""{ echo 'int printf(const char *, ...);'; for i in $(seq 40); do echo "static int f$i(int a, int b)
{ int t[8]; for (int i = 0; i < 8; i++) t[i] = a * $i + b ^ i; return a % 3 ? t[b & 7] : t[0] - b; }"; done
echo 'int main(void) { unsigned s = 1;'; for i in $(seq 40); do echo "s = s * 31 + f$i(s & 1023, $i);"; done
echo 'printf("%u\n", s); return 0; }'; } > a.c; gcc -O2 a.c -o a && ./a && objdump -d a | tail -n +4 | cksum""",
    "sqlite3": r'''sqlite3 :memory: "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
INSERT INTO t SELECT i, (i * 7919) % 1007, printf('%d-%s', i % 97, hex(i * 31)) FROM n;
CREATE INDEX ta ON t(a); SELECT count(*), sum(a), min(b), max(b) FROM t;
SELECT a, count(*) c FROM t GROUP BY a ORDER BY c DESC, a LIMIT 3;
SELECT length(group_concat(b)) FROM t WHERE a < 500; PRAGMA integrity_check;"''',
    "redis-server": r"""redis-server --port 0 --unixsocket "$PWD/s" --save "" --daemonize no >log 2>&1 &
cli() { env -u LD_PRELOAD redis-cli -s "$PWD/s" "$@"; }
for i in $(seq 100); do [ "$(cli ping 2>/dev/null)" = PONG ] && break; sleep 0.05; done
{ for i in $(seq 500); do printf 'set k%d %0*d\n' $i $((i % 90 + 1)) $i; echo "rpush l$((i % 7)) $i"; echo "zadd z $((i * 7919 % 1009)) m$i"; done; for i in $(seq 1 3 500); do echo "append k$i more"; echo "del k$((i + 1))"; done
} | cli >/dev/null
cli dbsize; cli get k300; cli get k31; cli llen l3; cli zrange z 0 4 withscores; cli lrange l2 0 5
cli eval 'local t = {} for i = 1, 500 do t[i] = redis.call("get", "k" .. i) or "-" end return redis.sha1hex(table.concat(t, ","))' 0
cli shutdown nosave; wait""",
    "paper": r"""for command in 'treeadd levels=12' 'perimeter levels=9' 'mst vertices=500 degree=16' 'deltablue size=50 rounds=2' \
'cfrac n=1000000016000000063 base=60 k=3' 'kinematics poses=50' 'netsim hosts=16 requests=20'; do "$BENCH"/$command; done""",
    "paper-long": r"""for command in treeadd perimeter mst cfrac deltablue kinematics netsim; do "$BENCH"/$command; done""",
}
SHORT = [name for name in CASES if name != "paper-long"]
MEASURED = re.compile(
    r" (seconds|ns_per_op|cpu_seconds|faults|peak_rss_kib|messages|handed|sleeps|wakes|lock_waits|buckets|attended|manager_us)=\S+"
)


def missing(case: str, bench: str | None) -> str:
    if not case.startswith("paper"):
        return "" if shutil.which(case) else f"no {case} here"
    return "" if bench and os.path.isdir(bench) else "the benchmark programs are not built"


def run(script: str, preload: str | None, bench: str | None) -> tuple[int, str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if preload is not None:
        environment["LD_PRELOAD"] = preload
    with tempfile.TemporaryDirectory(prefix="sutler-engine-") as folder:
        done = subprocess.run(["bash", "-c", script], env=dict(environment, LC_ALL="C", BENCH=bench or ""), cwd=folder,
                              capture_output=True, text=True, check=False, timeout=500, stdin=subprocess.DEVNULL)
    return done.returncode, MEASURED.sub("", done.stdout), done.stderr


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("preload")
    parser.add_argument("--only", default=",".join(SHORT), help="names, comma-separated")
    parser.add_argument("--bench", help="the folder of the built benchmark programs")
    options = parser.parse_args()
    failures = done = 0
    for program in options.only.split(","):
        lacks = missing(program, options.bench)
        if lacks:
            print(f"left out: {program}: {lacks}")
            continue
        expected = run(CASES[program], None, options.bench)
        got = run(CASES[program], options.preload, options.bench)
        done += 1
        noise = [line for line in got[2].splitlines() if line.startswith("sutler: ") or "cannot be preloaded" in line]
        if expected[0] != 0 or not expected[1]:
            print(f"FAILED: {program} fails without the engine: {expected}")
            failures += 1
        elif got[:2] != expected[:2] or noise:
            print(f"FAILED: {program}: status {expected[0]} without, {got[0]} with\n{expected[1]}---\n{got[1]}---\n{got[2]}")
            failures += 1
    if done == 0:
        print("SKIPPED: none of the programs is here")
        return 77
    print(f"{done - failures} of {done} programs: same output")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
