# SPDX-License-Identifier: MIT
"""Thread-local variables of the library: so many bytes at most, as its program header says (16; in debug builds four
more, for the ranks of the locks a thread holds).

They come out of the room the loader keeps for libraries opened late (1,664 bytes in glibc, for all of them together): a
library that takes much cannot be opened late, or keeps others from it.
"""

import struct
import sys

PT_TLS, MOST = 7, int(sys.argv[2])

with open(sys.argv[1], "rb") as file:
    image = file.read()
assert image[:5] == b"\x7fELF\x02", "not a 64-bit ELF file"
(table,) = struct.unpack_from("<Q", image, 32)
size, count = struct.unpack_from("<HH", image, 54)
for number in range(count):
    kind, _, _, _, _, _, bytes_in_memory, _ = struct.unpack_from("<IIQQQQQQ", image, table + number * size)
    if kind == PT_TLS:
        print(f"{bytes_in_memory} bytes of thread-local variables")
        if bytes_in_memory > MOST:
            sys.exit(f"FAILED: more than {MOST}")
