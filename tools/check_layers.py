#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that no layer of src/ uses a higher one, and that no file uses another that uses it.

The order is base < os < rcs < marks < heap < manager < core < hardened < entry.  stats and options are leaf services: anyone may use them,
and they themselves use only base and os.  A layer that can only look down can be read, tested and replaced alone; an
order that nothing checks is soon gone.

Two graphs are looked at: what each file includes, and, with --objects, which object's symbols each object needs.  Both
must have no upward edge and no cycle.  --draw writes the second one as a picture, docs/layers.svg.

Prints one line a violation and a summary; the exit code says whether there were any.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ORDER = ("base", "os", "rcs", "marks", "heap", "manager", "core", "hardened", "entry")
LEAVES = ("stats", "options")
LEAF_MAY_USE = ("base", "os")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
SOURCES = ("*.c", "*.h", "*.S", "*.def", "*.cc", "*.cpp", "*.inc")
PICTURE = Path("docs") / "layers.svg"

Graph = dict[str, dict[str, list[str]]]  # user -> used -> why


def allowed(layer: str, used: str) -> bool:
    """Whether a file of `layer` may use a file of `used`."""
    if layer == used:
        return True
    if layer in LEAVES:
        return used in LEAF_MAY_USE
    if used in LEAVES:
        return True
    return used in ORDER and layer in ORDER and ORDER.index(used) < ORDER.index(layer)


def layer_of(name: str) -> str:
    return name.split("/")[0] if "/" in name else ""


def target(root: Path, source: Path, name: str) -> Path | None:
    """The file an #include "name" means: beside the source, or below src/."""
    for candidate in (source.parent / name, root / name):
        if candidate.exists():
            return candidate.resolve()
    return None


def includes(root: Path) -> Graph:
    """What each file below `root` includes of the others; each reason is a line number."""
    root = root.resolve()
    graph: Graph = {}
    for path in sorted(path for pattern in SOURCES for path in root.rglob(pattern)):
        used = graph.setdefault(str(path.relative_to(root)), {})
        text = path.read_text(errors="replace")
        for match in INCLUDE.finditer(text):
            included = target(root, path, match.group(1))
            if included is not None and root in included.parents:  # else the public header, or generated
                line = text.count("\n", 0, match.start()) + 1
                used.setdefault(str(included.relative_to(root)), []).append(str(line))
    return graph


def symbols(root: Path, folders: Iterable[Path]) -> Graph:
    """Which object file needs which other's symbols; each reason is a symbol.  Objects whose source below `root` is gone
    are left over from an older build, and do not count."""
    defined: dict[str, str] = {}
    needed: dict[str, list[str]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.o")):
            name = str(path.relative_to(folder))[: -len(".o")]
            if not (root / name).exists():
                continue
            listing = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True).stdout
            for kind, symbol in (line.split()[-2:] for line in listing.splitlines()):
                if kind in "Uw":
                    needed.setdefault(name, []).append(symbol)
                elif kind in "TDBRCVW":
                    defined[symbol] = name
            needed.setdefault(name, [])
    graph: Graph = {}
    for name, wanted in needed.items():
        used = graph.setdefault(name, {})
        for symbol in wanted:
            if defined.get(symbol, name) != name:
                used.setdefault(defined[symbol], []).append(symbol)
    return graph


def upward(graph: Graph) -> list[str]:
    """Messages about edges that are not allowed, and about folders that are no layers."""
    found = []
    for name, used in sorted(graph.items()):
        layer = layer_of(name)
        if layer and layer not in ORDER + LEAVES:
            found.append(f"{name}: '{layer}' is not a layer; the layers are {' '.join(ORDER + LEAVES)}")
            continue
        for other, reasons in sorted(used.items()):
            if layer and layer_of(other) and not allowed(layer, layer_of(other)):
                found.append(f"{name}:{reasons[0]}: {layer} must not use {layer_of(other)} ({other})")
    return found


def levels(graph: Graph) -> tuple[dict[str, int], list[str]]:
    """For each file how many steps lie below it; and messages about files of which each uses the next, in a ring."""
    level: dict[str, int] = {}
    found: list[str] = []
    path: list[str] = []

    def visit(name: str) -> int:
        if name in path:
            ring = path[path.index(name) :] + [name]
            found.append("a cycle: " + " -> ".join(ring))
            return 0
        if name not in level:
            path.append(name)
            level[name] = max((visit(other) + 1 for other in sorted(graph.get(name, {}))), default=0)
            path.pop()
        return level[name]

    for name in sorted(graph):
        visit(name)
    return level, found


def picture(graph: Graph) -> str:
    """The graph as SVG: a row a layer, highest first; in it its files, each right of those of the layer it uses."""
    box, row, left, gap = (116, 17), 22, 84, 14
    layers = [layer for layer in ORDER + LEAVES if any(layer_of(name) == layer for name in graph)]
    place: dict[str, tuple[int, int]] = {}
    parts, y, width = [], gap, 0
    for layer in reversed(layers):
        inner = {n: {o: r for o, r in used.items() if layer_of(o) == layer} for n, used in graph.items()}
        inner = {n: used for n, used in inner.items() if layer_of(n) == layer}
        level, _ = levels(inner)
        columns: dict[int, list[str]] = {}
        for name in sorted(inner):
            columns.setdefault(level[name], []).append(name)
        for column, names in columns.items():
            for i, name in enumerate(names):
                place[name] = (left + column * (box[0] + gap), y + i * row)
        height = max(len(names) for names in columns.values()) * row
        width = max(width, left + len(columns) * (box[0] + gap))
        parts.append(f'<text x="{gap}" y="{y + 12}" font-weight="bold">{layer}</text>')
        y += height + gap
    lines = []
    for name, used in sorted(graph.items()):
        for other in sorted(used):
            if layer_of(other) == layer_of(name):
                (x1, y1), (x2, y2) = place[name], place[other]
                lines.append(f'<line x1="{x1}" y1="{y1 + 8}" x2="{x2 + box[0]}" y2="{y2 + 8}"/>')
    for name, (x, top) in sorted(place.items()):
        parts.append(f'<rect x="{x}" y="{top}" width="{box[0]}" height="{box[1]}" rx="3"/>')
        parts.append(f'<text x="{x + 5}" y="{top + 12}">{name.split("/", 1)[1]}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" font-family="sans-serif" font-size="11">\n'
        '<rect width="100%" height="100%" fill="white"/>\n<g stroke="#bbb" stroke-width="0.7">\n'
        + "\n".join(lines)
        + '\n</g>\n<g fill="#eef3fa" stroke="#7a93b5">\n'
        + "\n".join(part for part in parts if part.startswith("<rect"))
        + "\n</g>\n"
        + "\n".join(part for part in parts if part.startswith("<text"))
        + "\n</svg>\n"
    )


def main() -> int:
    home = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=home / "src")
    parser.add_argument("--objects", type=Path, nargs="*", default=[], help="folders of object files, named as their sources")
    parser.add_argument("--draw", action="store_true", help=f"write {PICTURE}")
    options = parser.parse_args()
    included = includes(options.root)
    found = upward(included) + levels(included)[1]
    if options.objects:
        linked = symbols(options.root, options.objects)
        found += upward(linked) + levels(linked)[1]
        if options.draw:
            (home / PICTURE).write_text(picture(linked))
    for message in found:
        print(message)
    print(f"layer check: {len(included)} files, {len(found)} violation{'s' if len(found) != 1 else ''}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
