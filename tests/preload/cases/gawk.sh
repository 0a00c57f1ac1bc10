# SPDX-License-Identifier: MIT
# gawk: word count over generated text, big hashes, string concatenation, regular expressions.
# needs: gawk
gawk 'BEGIN { srand(3); for (i = 0; i < 250000; i++) { s = ""; for (k = 0; k < 8; k++) s = s "w" int(rand() ^ 3 * 40000) " "; print s } }' > text
gawk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { PROCINFO["sorted_in"] = "@val_num_desc"; for (w in n) { if (c++ < 20) print w, n[w] } print length(n) }' text
gawk '{ gsub(/w1[0-9]*/, "<&>"); t += length($0) } END { print t }' text
gawk 'NR % 50 == 0 { s = s $1; a[NR] = $0 } END { print length(s), length(a); asort(a); print a[1]; print a[length(a)] }' text
