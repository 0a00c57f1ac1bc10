#!/bin/sh
# SPDX-License-Identifier: MIT
# The counter must accept the good path and refuse each flawed one: check_fixture.sh PYTHON COUNTER LIBRARY
set -u
"$1" "$2" "$3" good=6 || exit 1
for symbol in good=5 long_one=24 calls=24 locks=24 exchanges=24 leaves=24 absent=24; do
    if "$1" "$2" "$3" "$symbol"; then
        echo "FAILED: $symbol was accepted"
        exit 1
    fi
done
