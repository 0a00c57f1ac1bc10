# SPDX-License-Identifier: MIT
# stress-ng's malloc stressor, which writes and verifies what it allocates, reallocs and frees, with and without threads.
# needs: stress-ng
stress-ng --malloc 2 --malloc-ops 10000 --malloc-bytes 16M --verify --timeout 60 > log 2>&1 && echo "malloc verified" || { cat log >&2; echo failed; }
stress-ng --malloc 1 --malloc-ops 5000 --malloc-bytes 16M --malloc-pthreads 4 --verify --timeout 60 > log 2>&1 && echo "with threads verified" || { cat log >&2; echo failed; }
grep -ci 'fail:\|error:' log || true
