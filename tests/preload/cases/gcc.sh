# SPDX-License-Identifier: MIT
# gcc: a generated C file of many functions, compiled at -O2; the object's code and the program's output.
# needs: gcc gawk
gawk 'BEGIN { for (i = 0; i < 500; i++) printf "static int f%d(int a, int b) { int t[8]; for (int i = 0; i < 8; i++) t[i] = a * %d + b ^ i; switch (a %% 5) { case 0: return t[b & 7]; case 1: return t[0] - %d; default: return t[a & 7] + b; } }\n", i, i, i;
    print "int printf(const char *, ...);\nint main(void) { unsigned s = 1;"; for (i = 0; i < 500; i++) printf "s = s * 31 + f%d(s & 1023, %d);\n", i, i; print "printf(\"%u\\n\", s); return 0; }" }' > big.c
gcc -O2 -c big.c -o big.o
objdump -d big.o | tail -n +4 | cksum
gcc -O1 -g big.c -o big && ./big
gcc -O2 -fsyntax-only -Wall -Wextra big.c 2>&1 | cksum
