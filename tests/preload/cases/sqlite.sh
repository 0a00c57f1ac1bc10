# SPDX-License-Identifier: MIT
# sqlite3: inserts, indexes, joins, sorting and text search in memory and on disk.
# needs: sqlite3
cat > script.sql <<'END'
CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
INSERT INTO t SELECT i, (i * 7919) % 10007, printf('%d-%s', i % 977, hex(i * 31)) FROM n;
CREATE INDEX ta ON t(a);
CREATE INDEX tb ON t(b);
SELECT count(*), sum(a), min(b), max(b) FROM t;
SELECT a, count(*) c FROM t GROUP BY a ORDER BY c DESC, a LIMIT 5;
SELECT count(*) FROM t x JOIN t y ON x.a = y.a AND x.id < y.id AND x.id < 20000;
UPDATE t SET b = b || 'x' WHERE a % 3 = 0;
DELETE FROM t WHERE a % 5 = 1;
SELECT count(*), sum(length(b)) FROM t;
SELECT group_concat(b, '') IS NOT NULL, length(group_concat(b)) FROM t WHERE a < 500;
PRAGMA integrity_check;
END
sqlite3 :memory: < script.sql
sqlite3 disk.db < script.sql
echo '.dump' | sqlite3 disk.db | cksum
