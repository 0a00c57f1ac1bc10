#!/bin/sh
# SPDX-License-Identifier: MIT
#
# redis-server under the allocator that LD_PRELOAD names, driven over a socket of its own by a redis-benchmark
# without it.  Prints one line: the seconds the requests took.
set -eu
server_preload=${LD_PRELOAD:-libc.so.6} # by itself, Debian's redis-server has jemalloc
unset LD_PRELOAD
folder=$(mktemp -d)
server=
cleanup() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap cleanup EXIT
env LD_PRELOAD="$server_preload" redis-server --port 0 --unixsocket "$folder/s" --save '' \
    --appendonly no --dir "$folder" --logfile "$folder/log" &
server=$!
tries=0
until redis-cli -s "$folder/s" ping >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ] || ! kill -0 "$server" 2>/dev/null; then
        cat "$folder/log" >&2
        exit 1
    fi
    sleep 0.05
done
start=$(date +%s%N)
redis-benchmark -s "$folder/s" -q -n 60000 -c 20 -P 8 -r 100000 -d 200 -t set,get,lpush,lpop,sadd,hset >/dev/null
end=$(date +%s%N)
redis-cli -s "$folder/s" dbsize >/dev/null
echo "name=redis seconds=$(awk "BEGIN { printf \"%.6f\", ($end - $start) / 1e9 }")"
