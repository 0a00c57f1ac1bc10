#!/bin/sh
# SPDX-License-Identifier: MIT
# Starts a program with the library under a limit that must hold from its first instruction:
#   under.sh "ulimit -v 200000" PROGRAM ARGS...      under.sh "taskset -c 0" PROGRAM ARGS...
# The limit is shell text run before exec; the library is preloaded for the program only.
limit=$1
shift
case $limit in
    taskset*)
        command -v taskset >/dev/null || { echo "SKIPPED: no taskset"; exit 77; }
        exec $limit env LD_PRELOAD="$TEST_LIBRARY" "$@" ;;
    *)
        $limit || { echo "SKIPPED: $limit is refused"; exit 77; }
        LD_PRELOAD="$TEST_LIBRARY" exec "$@" ;;
esac
