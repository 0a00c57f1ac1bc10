# SPDX-License-Identifier: MIT
# redis-server under redis-benchmark and a fixed load, over a socket in the case's own folder; the data set's digest.
# needs: redis-server redis-benchmark redis-cli gawk
redis-server --port 0 --unixsocket "$PWD/s" --save '' --appendonly no --enable-debug-command yes \
    --io-threads 2 --daemonize no --logfile "$PWD/log" &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
tries=0
until redis-cli -s s ping > /dev/null 2>&1; do tries=$((tries + 1)); [ $tries -lt 100 ]; sleep 0.1; done
gawk 'BEGIN { for (i = 0; i < 60000; i++) { n = i * 7919 % 5003; printf "SET k%d %0*d\r\n", n, n % 400 + 1, i;
    printf "LPUSH l%d v%d\r\nHSET h%d f%d %d\r\nZADD z%d %d m%d\r\nAPPEND a%d abcdefgh\r\n", n % 37, i, n % 53, n, i, n % 11, n, i % 999, n % 101 } }' > load
redis-cli -s s --pipe < load | grep replies
redis-cli -s s debug digest
redis-benchmark -s s -q -n 15000 -c 20 -P 8 -d 200 -r 10000 -t set,get,incr,lpush,rpop,sadd,hset,zadd,mset > bench 2> /dev/null
echo "benchmark $?, $(tr '\r' '\n' < bench | grep -c 'requests per second') kinds"
redis-cli -s s flushall
redis-cli -s s --pipe < load | grep replies
redis-cli -s s debug digest
redis-cli -s s dbsize
redis-cli -s s shutdown nosave || true
wait $server
echo "server ended with $?"
trap - EXIT
