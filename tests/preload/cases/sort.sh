# SPDX-License-Identifier: MIT
# coreutils sort with several threads and with temporary files, checked against sort's own check.
# needs: sort gawk cksum
gawk 'BEGIN { srand(7); for (i = 0; i < 600000; i++) printf "%d %s%d\n", rand() * 1e9, substr("abcdefghij", i % 10 + 1), i }' > in
sort --parallel=4 in | cksum
sort --parallel=4 -k2,2 -k1n in | cksum
sort -S 4M --parallel=2 -T . -n in > out
sort -c -n out && echo sorted
sort -u -k1,1n in | wc -l
tac in | uniq -c | sort -rn | head -3 | cksum
cut -d' ' -f2 in | tr a-j A-J | sha256sum
