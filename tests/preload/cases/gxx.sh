# SPDX-License-Identifier: MIT
# g++: a translation unit heavy in templates; the object's code and the program's output.
# needs: g++ objdump
g++ -std=c++17 -O2 -c "$CASE_DIRECTORY/templates.cc" -o templates.o
objdump -d templates.o | tail -n +4 | cksum
g++ templates.o -o templates && ./templates
