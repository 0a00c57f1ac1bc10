# SPDX-License-Identifier: MIT
# postgres: a cluster of its own, made and run without privileges; pgbench's transactions by several clients, whose sums
# must agree; sorts, hashes, parallel scans; vacuum; an orderly end.
# needs-file: /usr/lib/postgresql/*/bin/pgbench
PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
export PATH PGHOST="$PWD" PGUSER=owner PGDATABASE=postgres
cat > inside.sh <<'END_SCRIPT'
initdb -D data -U owner -A trust -N --no-locale -E UTF8 > log 2>&1 || { tail -n 5 log; exit 1; }
pg_ctl -D data -s -w -t 60 -l server.log start -o "-k '$PWD' -c listen_addresses= -c fsync=off -c shared_buffers=32MB
    -c max_parallel_workers_per_gather=2 -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0"
trap 'pg_ctl -D data -s -m immediate stop || true' EXIT
pgbench -i -q -s 2 > log 2>&1
pgbench -n -c 4 -j 2 -t 150 > log 2>&1 && grep 'actually processed' log
pgbench -n -S -M prepared -c 4 -j 2 -t 300 > log 2>&1 && grep 'actually processed' log
psql -Atq << 'END_SQL'
SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history),
       (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(tbalance) FROM pgbench_tellers),
       (SELECT count(*) FROM pgbench_history), (SELECT count(*) FROM pgbench_accounts);
CREATE TABLE t AS SELECT i, (i::bigint * 7919) % 10007 AS a, md5(i::text) AS b FROM generate_series(1, 60000) i;
ANALYZE t;
SELECT count(*), count(DISTINCT b), max(b) FROM t;
SELECT md5(string_agg(b, '' ORDER BY a, i)) FROM t;
SELECT count(*) FROM t x JOIN t y USING (a) WHERE x.i < 3000;
SELECT length(json_agg(t)::text), length(array_agg(b)::text) FROM t;
SELECT sum(cardinality(regexp_split_to_array(b, '[0-9]+'))) FROM t;
VACUUM FULL;
SELECT count(*) FROM t;
END_SQL
trap - EXIT
pg_ctl -D data -s -w -m fast stop && echo stopped
grep -E 'PANIC|FATAL|terminated by signal|sutler: ' server.log || echo "nothing in the log"
END_SCRIPT
if [ "$(id -u)" != 0 ]; then
    exec sh -eu inside.sh
fi
# The server refuses to be root; whoever it is instead must be able to read the library.
[ -z "$CASE_LIBRARY" ] || { cp "$CASE_LIBRARY" library.so && chmod 755 library.so && export LD_PRELOAD="$PWD/library.so"; }
chown -R 65534:65534 . && chmod 755 .
exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -eu inside.sh
