# SPDX-License-Identifier: MIT
# Of python's own test suite what is about threads, processes and memory, every object in malloc.
# oracle: passed
# needs: /usr/bin/python3
# needs-file: /usr/lib/python3.*/test/test_dict.py
names="test_threading test_thread test_fork1 test_gc test_dict"
. "$(dirname "$0")/python_testsuite.sh"
