# SPDX-License-Identifier: MIT
# eatmydata: fsync and its like taken away by a library preloaded after this one (its own doing) and before it.
# needs: eatmydata sqlite3 tar python3
# needs-file: /usr/lib/*/libeatmydata.so
export PYTHONMALLOC=malloc SUTLER_MANAGER=on
cat > script.sql <<'END_SCRIPT'
CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
INSERT INTO t SELECT i, (i * 7919) % 10007, hex(i * 31) FROM n;
CREATE INDEX ta ON t(a);
DELETE FROM t WHERE a % 5 = 1;
SELECT count(*), sum(length(b)) FROM t;
PRAGMA integrity_check;
END_SCRIPT
cat > script.py <<'END_SCRIPT'
import os, sys
sys.path.insert(0, os.environ["CASE_DIRECTORY"])
import grown

blocks = grown.grow()
with open("file", "wb") as file:
    for i in range(300):
        file.write(blocks[i])
        os.fsync(file.fileno())
print(grown.threads(), grown.churn(blocks), os.path.getsize("file"))
END_SCRIPT
eatmydata sqlite3 disk.db < script.sql
eatmydata tar --sort=name --mtime=@0 --owner=0 --group=0 --mode=644 -cf - script.sql script.py | cksum
eatmydata python3 script.py
eat=$(ls /usr/lib/*/libeatmydata.so | head -n 1)
LD_PRELOAD="$eat:$CASE_LIBRARY" python3 script.py
