#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Check one model with Spin and say whether it did what it should: hold (`pass`) or, broken on purpose, be caught
# (`error`). A broken variant that passes means the model has become blind, so both outcomes are tests.
#
#   run-model.sh pass|error MODEL.pml [-DFLAG...]
#
# Exit 0 as expected, 1 otherwise, 77 where spin or a C compiler is missing. With KEEP_TRAIL=1 the counterexample is
# printed step by step.
set -u

expected=$1
model=$2
shift 2

here=$(cd "$(dirname "$0")" && pwd)
for tool in spin gcc; do
    if ! command -v "$tool" > /dev/null 2>&1; then
        echo "skipped: $tool is not installed"
        exit 77
    fi
done

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cp "$here"/*.pml "$work"/ && cd "$work" || exit 1

# -DSAFETY: assertions and deadlocks; -DCOLLAPSE: states stored by parts; PROGRESS=1 looks for livelocks instead.
mode=-DSAFETY
search=
if [ "${PROGRESS:-0}" = 1 ]; then
    mode=-DNP
    search='-l -f'
fi

if ! spin -a "$@" "$model" > spin.log 2>&1 || grep -q 'Error' spin.log; then
    cat spin.log
    echo "FAILED: $model does not parse"
    exit 1
fi
# Not optimised: these verifiers take longer to compile than that saves them.
if ! gcc -w $mode -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=2000 -o pan pan.c > gcc.log 2>&1; then
    cat gcc.log
    echo "FAILED: the verifier of $model does not compile"
    exit 1
fi
# -m: search depth. -n: do not list unreached states.
./pan $search -n -m"${DEPTH:-200000}" > pan.log 2>&1

states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log | head -1)
errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log | head -1)
if [ -z "$errors" ]; then
    cat pan.log
    echo "FAILED: the verifier of $model did not finish"
    exit 1
fi
# Stopped by the bound of memory or depth, it has not seen all there is.
if [ "$expected" = pass ] && [ "$errors" = 0 ] &&
    grep -q -e 'max search depth too small' -e 'not completed' -e 'out of memory' pan.log; then
    cat pan.log
    echo "FAILED: the search of $model was not exhaustive"
    exit 1
fi

if [ "${KEEP_TRAIL:-0}" = 1 ] && [ -f "$model.trail" ]; then
    spin -t -p -g -l "$@" "$model"
fi
case $expected in
    pass)
        if [ "$errors" = 0 ]; then
            echo "holds: $model $* ($states states)"
            exit 0
        fi
        grep '^pan:1' pan.log
        echo "FAILED: Spin found an error in $model $*"
        exit 1
        ;;
    error)
        if [ "${errors:-0}" != 0 ]; then
            echo "caught: $model $* ($(sed -n 's/^pan:1: //p' pan.log | head -1))"
            exit 0
        fi
        echo "FAILED: $model $* is broken on purpose and Spin found nothing"
        exit 1
        ;;
esac
echo "usage: $0 pass|error MODEL.pml [-DFLAG...]"
exit 1
