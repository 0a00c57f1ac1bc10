# SPDX-License-Identifier: MIT
# libpsx of the distribution: a system call for every thread of the process, made by a signal to each thread it knows of,
# or (since libcap 2.72) to each task in /proc, again and again until all have answered.  A thread it cannot reach makes
# it wait for ever, or keeps what the others gave up.
# needs: gcc timeout
# needs-file: /usr/include/sys/psx_syscall.h
export SUTLER_MANAGER=on
LD_PRELOAD= gcc -O1 -fno-builtin -o program "$CASE_DIRECTORY/psx.c" -pthread -Wl,-wrap,pthread_create -lpsx
timeout 30 ./program
