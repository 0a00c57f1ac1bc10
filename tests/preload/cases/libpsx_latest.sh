# SPDX-License-Identifier: MIT
# The same by a libpsx that signals every task in /proc until all have answered.  Its source comes as a Go module, fetched
# by go and checked by its sum.
# needs: go gcc timeout gawk
export SUTLER_MANAGER=on GOTOOLCHAIN=local
source=$(LD_PRELOAD= timeout 40 go mod download -json kernel.org/pub/linux/libs/security/libcap/psx@v1.2.78 2> /dev/null |
    gawk -F '"' '$2 == "Dir" { print $4 }')
[ -n "$source" ] || { echo "libpsx's Go module cannot be had"; exit 77; }
mkdir -p include/sys && ln -s "$source/psx_syscall.h" include/sys/
LD_PRELOAD= gcc -O1 -fno-builtin -Iinclude -I"$source" -o program "$CASE_DIRECTORY/psx.c" "$source/psx.c" "$source/psx_calls.c" -pthread
timeout 30 ./program
