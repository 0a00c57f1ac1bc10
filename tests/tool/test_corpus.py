# SPDX-License-Identifier: MIT
"""How the corpus's runs are read, and whether the page's table has the counts of the expectations."""

from __future__ import annotations

import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from sutler_tool import corpus, publish
from sutler_tool.paths import ToolError

ROOT = Path(__file__).resolve().parents[2]
BUG, DONE, REPORT = "corpus: bug\n", "corpus: done\n", "sutler: free(): double free 0x10\n"


@pytest.mark.parametrize(
    "status, errors, outcome",
    [
        (-signal.SIGABRT, BUG + REPORT, "caught at once"),
        (-signal.SIGSEGV, BUG, "caught at once"),
        (0, BUG + REPORT + DONE, "caught at once"),
        (corpus.EFFECT, BUG + REPORT + DONE, "caught at once"),
        (-signal.SIGABRT, BUG + DONE + REPORT, "caught later"),
        (-signal.SIGABRT, BUG + DONE, "caught later"),
        (-signal.SIGSEGV, BUG + DONE + REPORT, "caught later"),
        (corpus.EFFECT, BUG + DONE + REPORT, "caught later"),
        (-signal.SIGSEGV, BUG + DONE, "crashed"),
        (0, BUG + DONE, "harmless"),
        (corpus.EFFECT, BUG + DONE, "missed"),
    ],
)
def test_outcome_of_a_run(status: int, errors: str, outcome: str) -> None:
    assert corpus.classify(status, errors) == outcome


@pytest.mark.parametrize(
    "status, errors",
    [
        (1, "corpus: broken: no thread\n"),
        (0, REPORT + BUG + DONE),
        (-signal.SIGABRT, ""),
        (-signal.SIGSEGV, ""),
        (-signal.SIGALRM, BUG + DONE),
        (9, BUG + DONE),
    ],
)
def test_a_run_that_says_nothing(status: int, errors: str) -> None:
    with pytest.raises(corpus.CorpusError):
        corpus.classify(status, errors)


def test_expectations_are_whole() -> None:
    rows = corpus.table()
    assert len({row["case"] for row in rows}) == len(rows) > 80
    for row in rows:
        assert row["case"].split(".")[0] in corpus.CLASSES
        assert {row["plain"], row["hardened"], row["sweep"]} <= set(corpus.OUTCOMES)
        assert row["without guards"] in ("", *corpus.OUTCOMES) and row["without guards"] != row["hardened"]
        if row["case"].startswith("correct."):
            assert row["plain"] == row["hardened"] == row["sweep"] == "harmless"


def test_the_second_tier_misses_no_write_after_free_and_no_double_free() -> None:
    for row in corpus.table():
        if row["case"].split(".")[0] in ("write_after_free", "read_after_free", "double_free"):
            assert row["sweep"] in ("caught at once", "caught later", "harmless"), row["case"]


def test_table_in_the_page_has_the_counts_expected() -> None:
    page = (ROOT / "docs/security.md").read_text()
    table = re.search(rf"<!-- table {corpus.TITLE} -->(.*?)<!-- end -->", page, re.S)[1]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    columns = {heading: [line[index] for line in lines[1:]] for index, heading in enumerate(lines[0])}
    for heading, column in corpus.COLUMNS.items():
        expected = {row["case"]: row[column] for row in corpus.table()}
        assert columns[heading] == [row[1] for row in corpus.rows({heading: expected})]


def test_a_cell_counts_a_crash_as_missed() -> None:
    assert corpus.cell(Counter({"caught later": 2, "crashed": 1, "missed": 3})) == "· / 2 / · / 4"


def test_a_table_needs_its_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- table other -->\n<!-- end -->\n")
    with pytest.raises(ToolError, match="has no place"):
        publish.write_table(page, corpus.TITLE, "text")
    page.write_text(f"<!-- table {corpus.TITLE} -->\nold\n<!-- end -->\nend\n")
    publish.write_table(page, corpus.TITLE, "new\n")
    assert page.read_text() == f"<!-- table {corpus.TITLE} -->\n\nnew\n\n<!-- end -->\nend\n"
