#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions of the hot paths in the disassembly of the built library.

The paths are hand-written so that the unlikely side of every conditional branch jumps away: the straight line from the
symbol to its first `ret` is what a warm malloc or free executes.  Asked of it: a bound on its length, no call, no `lock`
prefix and no instruction that locks without one (xchg with memory), no unconditional jump that leaves the line.  A short
unconditional jump is followed, so that a symbol may begin with a jump to the code for the mode chosen at start.
"""

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    address: int
    text: str

    @property
    def mnemonic(self) -> str:
        words = self.text.split()
        while words and words[0] in ("bnd", "notrack", "data16", "cs", "rex.W"):
            words.pop(0)
        return words[0] if words else ""


def disassemble(library: str) -> dict[int, Instruction]:
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "-w", library], capture_output=True, text=True, check=True
    ).stdout
    rows = re.findall(r"^\s*([0-9a-f]+):\t(.*?)\s*(?:#.*)?$", listing, re.M)
    return {int(address, 16): Instruction(int(address, 16), text.strip()) for address, text in rows}


def symbol_address(library: str, name: str) -> int:
    table = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    for row in table.splitlines():
        parts = row.split()
        if len(parts) == 3 and parts[2].split("@")[0] == name and parts[1] in "TtWwi":
            return int(parts[0], 16)
    raise SystemExit(f"FAILED: {library} does not export {name}")


def hot_path(code: dict[int, Instruction], entry: int, name: str, limit: int) -> list[Instruction]:
    order = sorted(code)
    position = {address: index for index, address in enumerate(order)}
    path: list[Instruction] = []
    address = entry
    while True:
        if address not in position or len(path) > 4 * limit:
            raise SystemExit(f"FAILED: {name}: the straight line from its entry does not end in ret within {4 * limit}")
        instruction = code[address]
        path.append(instruction)
        if instruction.mnemonic in ("ret", "retq"):
            return path
        if instruction.mnemonic in ("jmp", "jmpq"):
            target = re.match(r".*?jmpq?\s+([0-9a-f]+)\b", instruction.text)
            if target is None or "*" in instruction.text:
                raise SystemExit(f"FAILED: {name}: an indirect jump on the hot path: {instruction.text}")
            address = int(target.group(1), 16)
            continue
        address = order[position[address] + 1]


def problems(path: list[Instruction], limit: int) -> list[str]:
    # Padding and landing pads are fetched but do nothing; they do not count.
    counted = [i for i in path if not i.mnemonic.startswith(("nop", "endbr"))]
    found = [f"{len(counted)} instructions, at most {limit} allowed"] if len(counted) > limit else []
    for instruction in counted:
        if instruction.mnemonic.startswith("call"):
            found.append(f"a call: {instruction.text}")
        if re.match(r"(.*\b)?lock\b", instruction.text):
            found.append(f"a lock prefix: {instruction.text}")
        if instruction.mnemonic.startswith("xchg") and "(" in instruction.text:
            found.append(f"an implied lock: {instruction.text}")
        if instruction.mnemonic in ("mfence", "sfence", "lfence", "cpuid", "syscall", "rdtsc", "rdtscp"):
            found.append(f"a serialising instruction: {instruction.text}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("limits", nargs="+", help="SYMBOL=LIMIT")
    options = parser.parse_args()
    code = disassemble(options.library)
    failed = False
    for row in options.limits:
        name, limit = row.split("=")
        path = hot_path(code, symbol_address(options.library, name), name, int(limit))
        found = problems(path, int(limit))
        counted = sum(not i.mnemonic.startswith(("nop", "endbr")) for i in path)
        print(f"{name}: {counted} instructions (limit {limit})")
        if found:
            failed = True
            print(*[f"FAILED: {name}: {problem}" for problem in found], sep="\n")
            print(*[f"  {i.address:x}: {i.text}" for i in path], sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
