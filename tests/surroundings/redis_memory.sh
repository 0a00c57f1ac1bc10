#!/bin/sh
# SPDX-License-Identifier: MIT
#
# redis_memory.sh: Debian's redis is linked with jemalloc and asks it how its memory is.  With the library preloaded the
# answers must be about the heap in use: more allocated than redis itself has counted, and not much more.
set -u
command -v redis-server > /dev/null && command -v redis-cli > /dev/null || { echo "SKIPPED: no redis"; exit 77; }
ldd "$(command -v redis-server)" | grep -q jemalloc || { echo "SKIPPED: redis without jemalloc"; exit 77; }
folder=$(mktemp -d) && cd "$folder" || exit 1
LD_PRELOAD=$TEST_LIBRARY redis-server --port 0 --unixsocket "$folder/s" --save '' --enable-debug-command yes --daemonize no \
    --logfile "$folder/log" &
server=$!
trap 'kill $server 2> /dev/null; wait $server 2> /dev/null; rm -rf "$folder"' EXIT
tries=0
until redis-cli -s s ping > /dev/null 2>&1; do
    tries=$((tries + 1)); [ $tries -lt 300 ] || { echo "FAILED: redis does not start"; cat log; exit 1; }
    sleep 0.1
done
redis-cli -s s debug populate 50000 key 200 > /dev/null
sleep 0.3 # it asks for its memory ten times a second
redis-cli -s s info memory | tr -d '\r' > info
[ "$(redis-cli -s s memory purge)" = OK ] || { echo "FAILED: memory purge"; exit 1; }
awk -F: '{ of[$1] = $2 } END {
    print of["used_memory"], of["allocator_allocated"], of["allocator_active"], of["allocator_resident"], of["allocator_frag_ratio"]
    good = of["used_memory"] > 10000000 && of["allocator_allocated"] > 0.9 * of["used_memory"] &&
           of["allocator_allocated"] < 1.5 * of["used_memory"] && of["allocator_active"] >= of["allocator_allocated"] &&
           of["allocator_resident"] >= of["allocator_active"] && of["allocator_frag_ratio"] >= 1 && of["allocator_frag_ratio"] < 2
    if (!good) print "FAILED: the figures are nonsense"
    exit !good }' info
