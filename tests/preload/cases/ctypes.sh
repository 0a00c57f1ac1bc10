# SPDX-License-Identifier: MIT
# python3 that looks libc's functions up in libc and in a library that needs it, as programs do that free what a library
# returned, and those that ask for malloc_trim now and then.
# needs: python3
cat > script.py <<'END_SCRIPT'
import ctypes
import ctypes.util

for name in ("libc.so.6", ctypes.util.find_library("m"), None):
    libc = ctypes.CDLL(name)
    for function in ("malloc", "calloc", "realloc", "strdup", "realpath", "getcwd"):
        getattr(libc, function).restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    total = 0
    for size in range(0, 40000, 97):
        block = libc.strdup(b"x" * size)
        total += len(ctypes.string_at(block))
        libc.free(libc.realloc(block, 2 * size + 1))
        libc.free(libc.malloc(size))
        libc.free(libc.calloc(size, 1))
        libc.free(libc.realpath(b"/usr/..", None))
        libc.free(libc.getcwd(None, 0))
    print(name is None, total, libc.malloc_trim(0) in (0, 1))
END_SCRIPT
python3 script.py
