#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that no layer of src/ includes a higher one.

The order is base < os < rcs < heap < manager < core < entry.  guard, stats and options are leaf services: anyone may
include them, and they themselves include only base and os.  A layer that can only look down can be read,
tested and replaced alone; an order that nothing checks is soon gone.

Prints one line a violation and a summary; the exit code says whether there were any.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ORDER = ("base", "os", "rcs", "heap", "manager", "core", "entry")
LEAVES = ("guard", "stats", "options")
LEAF_MAY_INCLUDE = ("base", "os")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
SOURCES = ("*.c", "*.h", "*.S", "*.def", "*.cc", "*.cpp", "*.inc")


def allowed(layer: str, included: str) -> bool:
    """Whether a file of `layer` may include a file of `included`."""
    if layer == included:
        return True
    if layer in LEAVES:
        return included in LEAF_MAY_INCLUDE
    if included in LEAVES:
        return True
    return included in ORDER and layer in ORDER and ORDER.index(included) < ORDER.index(layer)


def layer_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).parts
    return parts[0] if len(parts) > 1 else ""


def target(root: Path, source: Path, name: str) -> Path | None:
    """The file an #include "name" means: beside the source, or below src/."""
    for candidate in (source.parent / name, root / name):
        if candidate.exists():
            return candidate.resolve()
    return None


def violations(root: Path) -> tuple[list[str], int]:
    """Messages about wrong includes below `root`, and how many files were read."""
    root = root.resolve()
    found: list[str] = []
    files = sorted(path for pattern in SOURCES for path in root.rglob(pattern))
    for path in files:
        layer = layer_of(path, root)
        where = path.relative_to(root)
        if layer and layer not in ORDER and layer not in LEAVES:
            found.append(f"{where}: '{layer}' is not a layer; the layers are {' '.join(ORDER + LEAVES)}")
            continue
        text = path.read_text(errors="replace")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            included = target(root, path, match.group(1))
            if included is None or root not in included.parents:
                continue  # the public header, or generated
            other = layer_of(included, root)
            if layer and other and not allowed(layer, other):
                found.append(f"{where}:{line}: {layer} must not include {other} ({match.group(1)})")
    return found, len(files)


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "src"
    found, count = violations(root)
    for message in found:
        print(message)
    print(f"layer check: {count} files, {len(found)} violation{'s' if len(found) != 1 else ''}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
