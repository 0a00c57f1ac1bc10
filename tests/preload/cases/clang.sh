# SPDX-License-Identifier: MIT
# clang: the same C++ translation unit, and a C file with warnings.
# needs: clang++ objdump
clang++ -std=c++17 -O2 -c "$CASE_DIRECTORY/templates.cc" -o templates.o
objdump -d templates.o | tail -n +4 | cksum
clang++ templates.o -o templates && ./templates
