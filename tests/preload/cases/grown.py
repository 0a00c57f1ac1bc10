# SPDX-License-Identifier: MIT
"""A python large enough for the library to have its second thread, and the work the cases do in it.

With the library the thread must be there: a case whose hazard it is would prove nothing without.
"""

import hashlib
import os
import pathlib
import sys
import threading
import time


def manager_runs() -> bool:
    tasks = pathlib.Path("/proc/self/task").glob("*/comm")
    return any(task.read_text(encoding="utf-8").strip() == "sutler-manager" for task in tasks)


def grow(mib: int = 48) -> list[bytearray]:
    """That much in blocks of a few KiB, and the manager at work if there is a library to have one."""
    more: list[bytearray] = []
    blocks = [bytearray(b"x" * (1500 + i * 7 % 3000)) for i in range(mib * 350)]
    for _ in range(200):
        if not os.environ.get("CASE_LIBRARY") or manager_runs():
            return blocks
        more += [bytearray(b"y" * 3000) for _ in range(1000)]
        time.sleep(0.05)
    sys.exit("grown.py: the heap is large and there is no manager")


def churn(blocks: list[bytearray], rounds: int = 10) -> str:
    """Frees and takes again what the manager gives back and makes ready, with pauses in which it sleeps and wakes."""
    for n in range(rounds):
        for i in range(n % 3, len(blocks), 3):
            blocks[i] = bytearray(b"z" * ((i * 31 + n * 977) % 5000))
        if n % 5 == 4:
            kept = blocks[: len(blocks) // 2]
            blocks = []
            time.sleep(0.2)
            blocks = kept + [bytearray(b"w" * (i % 4000)) for i in range(len(kept))]
        time.sleep(0.02)
    return f"{len(blocks)} blocks, {sum(map(len, blocks))} bytes, {hashlib.sha256(b''.join(blocks[:2000])).hexdigest()[:16]}"


def threads(count: int = 4) -> list[int]:
    sums = [0] * count

    def work(n: int) -> None:
        table = {i: bytes((i * n) % 3000) for i in range(6000)}
        sums[n] = sum(map(len, table.values()))

    running = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sums


def main() -> None:
    blocks = grow()
    print(threads(), churn(blocks), threads())


if __name__ == "__main__":
    main()
