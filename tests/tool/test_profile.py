# SPDX-License-Identifier: MIT
"""Profiles: the counting library against a program whose calls are known, and callgrind's files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from sutler_tool import callgrind, profile

PROGRAM = """
#include <stdlib.h>
int main(void) {
    void *volatile block[100];
    for (int i = 0; i < 100; i++) block[i] = malloc(100);
    for (int i = 0; i < 100; i++) free(block[i]);
    for (int i = 0; i < 50; i++) free(calloc(3, 5000));
    void *volatile grown = malloc(10);
    for (int i = 1; i < 11; i++) grown = realloc(grown, (size_t)i * 1000);
    void *volatile aligned; void *at = 0;
    if (posix_memalign(&at, 256, 3000)) return 1;
    aligned = at;
    (void)aligned;
    return 0;
}
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("known")
    (folder / "known.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O0", "-o", str(folder / "known"), str(folder / "known.c")], check=True)
    return str(folder / "known")


def test_counts_are_exact(known: str) -> None:
    totals, run, processes = profile.trace([known])
    assert run.ok and processes == 1
    assert (totals["calls_malloc"], totals["calls_calloc"], totals["calls_realloc"], totals["calls_aligned"]) == (
        101,
        50,
        10,
        1,
    )
    assert totals["calls_free"] == 150
    assert profile.buckets(totals, "size_")[7] == 100, "sizes 65-128"
    # A block's age counts its own bytes: 50 of 15000 freed at once, the first 19 of 100 x 100, one realloc of 9000.
    assert profile.buckets(totals, "life_")[14] == 50 + 19 + 1
    assert totals["end_blocks"] == 2 and totals["end_bytes"] == 13000


def test_processes_of_a_tree_are_added_up(known: str) -> None:
    totals, _, processes = profile.trace(["/bin/sh", "-c", f"{known}; {known}; true"])
    assert processes >= 2 and totals["calls_calloc"] >= 100


def test_labels() -> None:
    assert [profile.size_label(bucket) for bucket in (0, 1, 4, 7, 12, 21)] == [
        "0-1",
        "2",
        "9-16",
        "65-128",
        ">2K-4K",
        ">1M-2M",
    ]


CALLGRIND = """version: 1
events: Ir
fn=(1) main
10 100
cfn=(2) malloc
calls=5 0
11 250
cfn=(3) operator new(unsigned long)
calls=2 0
12 120
cfn=(4) work
calls=1 0
13 500

fn=(3)
20 20
cfn=(2)
calls=2 0
21 100

fn=(4)
30 400
cfn=(5) free'2
calls=4 0
31 100

fn=(2)
1 350

totals: 1000
"""


def test_callgrind_counts_entries_from_outside_only(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(CALLGRIND)
    cost = callgrind.read([tmp_path / "out"])
    assert cost.total == 1000
    assert dict(cost.calls) == {"malloc": 7, "free": 4}
    assert dict(cost.instructions) == {"malloc": 370, "free": 100}
    assert cost.share == pytest.approx(0.47) and cost.bound == pytest.approx(1 / 0.53)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("malloc", "malloc"),
        ("__libc_calloc", "calloc"),
        ("realloc'2", "realloc"),
        ("free@plt", "free"),
        ("operator delete(void*)", "free"),
        ("operator new[](unsigned long)", "malloc"),
        ("main", ""),
        ("malloc_printerr", ""),
    ],
)
def test_families(name: str, kind: str) -> None:
    assert callgrind.family(name) == kind
