# SPDX-License-Identifier: MIT
# Parts of python's own test suite (Debian's libpython3.N-testsuite), every object in malloc.
# oracle: passed
# needs: /usr/bin/python3
# needs-file: /usr/lib/python3.*/test/test_dict.py
export PYTHONMALLOC=malloc
for name in ${names:-test_dict test_list test_json test_bytes test_re test_threading test_fork1 test_subprocess test_thread \
    test_gc test_multiprocessing_fork}; do
    if timeout 400 /usr/bin/python3 -m test -q $name > log 2>&1; then
        echo "$name passed"
    else
        echo "$name failed"
        grep -E '^(FAIL|ERROR|Fatal|Segmentation|sutler)' log | sed 's/0x[0-9a-f]*/0x/g' | sort -u
        tail -40 log >&2
    fi
done
