# SPDX-License-Identifier: MIT
"""Whether a preloaded library can reach a program, and if not why.  The front door's `run` holds the same rules in
shell, because it must start at once."""

from __future__ import annotations

import os
import shutil
import stat
import struct
from pathlib import Path
from typing import Optional

PT_INTERP = 3


def interpreter_of(path: Path) -> Optional[str]:
    """The dynamic linker an ELF program asks for: "" when static, None when this is no 64-bit ELF file."""
    with path.open("rb") as stream:
        head = stream.read(64)
        if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] != 2 or head[5] != 1:
            return None
        (offset,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        for index in range(count):
            stream.seek(offset + index * size)
            header = stream.read(56)
            if len(header) == 56 and struct.unpack_from("<I", header)[0] == PT_INTERP:
                start, length = struct.unpack_from("<Q", header, 8)[0], struct.unpack_from("<Q", header, 32)[0]
                stream.seek(start)
                return stream.read(length).rstrip(b"\0").decode(errors="replace")
    return ""


def refusal(program: str, through_script: bool = True) -> str:
    """Why `program` cannot be run under a preloaded library; an empty string when it can."""
    found = shutil.which(program) or program
    path = Path(found)
    if not path.exists():
        return f"'{program}' was not found"
    if path.is_dir():
        return f"'{program}' is a directory"
    if not os.access(path, os.X_OK):
        return f"'{program}' is not executable (chmod +x?)"
    if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID):
        return f"'{program}' is setuid or setgid: the system ignores LD_PRELOAD for it; link the library in instead"
    try:
        with path.open("rb") as stream:
            head = stream.read(256)
    except OSError:
        return ""
    if head[:4] == b"\x7fELF":
        if head[4:5] == b"\x01":
            return f"'{program}' is a 32-bit program, and this library is 64-bit"
        interpreter = interpreter_of(path)
        if interpreter == "":
            return f"'{program}' is statically linked: no malloc is left to replace. Link it with libsutler.a instead"
        if interpreter and "/ld-musl" in interpreter:
            return (
                f"'{program}' uses musl, and this library is built for glibc. "
                "./sutler build musl makes one for LD_PRELOAD"
            )
    elif head[:2] == b"#!" and through_script:
        words = head[2:].split(b"\n", 1)[0].split()
        if words:
            return refusal(words[0].decode(errors="replace"), through_script=False)
    return ""
