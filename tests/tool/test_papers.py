# SPDX-License-Identifier: MIT
"""papers/papers.md, and what papers/predict.md measured, say nothing in figures that the table it cites does not say, and the papers' claims are decided by a
rule.  A sentence of ours may have a figure only if it names a table of the page in backticks and the figure stands there;
what a paper says stands in quotes (`> `) or in tables outside the marks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sutler_tool import claims, publish, results, suites
from sutler_tool.measure import Run
from sutler_tool.paths import ToolError
from sutler_tool.results import Program, Results
from test_bench import suite_folder  # noqa: F401
from test_publish import folder_of, table_of  # noqa: F401

PAGE = Path(__file__).resolve().parents[2] / "papers" / "papers.md"
NAME = r"[A-Z]?\.?\d+(?:\.\d+)*(?: ?\([a-e]\))?"
NAMES = re.compile(
    rf"(?i:tables?|figures?|chapters?|sections?|designs?|appendix|MMT|LFMalloc|thesis|Hoard|decision|Core) {NAME}(?:(?:,| and| to|, and) {NAME})*"
    r"|\b(?:19|20)\d\d\b|CPU2006|\bi7\b|x86-64|aarch64"
)
FIGURE = re.compile(r"\d[\d,.]*\d|\d")
RATIO = re.compile(
    r"\b(?:twice|thrice|half|halve[sd]?|thirds?|quarters?|fifths?|sixths?|eighths?|tenths?|doubles?|hundredths?|"
    r"(?:two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|many)(?: hundred| thousand)? times|orders? of magnitude)\b",
    re.I,
)


def sentences(text: str) -> list[str]:
    """What we say ourselves: no generated table, quote, table, heading or code."""
    text = publish.MARK.sub("", text)
    text = re.sub(r"^(?:[|>#]|    |<!--).*$", "", text, flags=re.M)
    return [part for block in re.split(r"\n\s*\n", text) for part in re.split(r"(?<=[.:?!])\s+", block.strip()) if part]


def uncited(text: str) -> list[str]:
    """Figures of sentences that no table named in them has."""
    tables = {match["name"]: match["body"] for match in publish.MARK.finditer(text)}
    found = []
    for sentence in sentences(text):
        cited = "\n".join(tables[name] for name in re.findall(r"`([^`]+)`", sentence.replace("\n", " ")) if name in tables)
        plain = NAMES.sub("", re.sub(r"`[^`]*`|\]\([^)]*\)", "", sentence.replace("\n", " ")))
        shown = set(FIGURE.findall(cited))
        found += [f"{figure}: {sentence}" for figure in FIGURE.findall(plain) if figure not in shown]
        found += [f"{word}: {sentence}" for word in RATIO.findall(plain)]
    return found


def test_no_figure_of_the_page_is_missing_from_the_table_it_cites() -> None:
    assert uncited(PAGE.read_text()) == []


def test_no_figure_of_what_was_measured_is_missing_from_its_table() -> None:
    measured = (PAGE.parent / "predict.md").read_text().split("## What was measured")[1]
    assert "<!-- table cost -->" in measured and uncited(measured) == []


@pytest.mark.parametrize("name, page", [("engines", "papers.md"), ("predict", "predict.md")])
def test_every_table_of_the_suite_has_its_place(name: str, page: str) -> None:
    marks = [match["name"] for match in publish.MARK.finditer((PAGE.parent / page).read_text())]
    wanted = {*suites.load(name).groups, f"{name}, claims"}
    assert wanted <= set(marks) and len(marks) == len(set(marks))


def test_what_the_page_cites_exists() -> None:
    """Rows, columns and tables that sentences name in backticks; paths and settings are test_docs.py's affair."""
    suite = suites.load("engines")
    known = {*suite.groups, *(entry.name for entry in suite.entries), *(row["name"] for row in suite.meta["library"]), "glibc", "sutler"}
    known |= {key for entry in suite.entries for key in (entry.figure, *entry.also)} | set(GENERAL)
    cited = {name for sentence in sentences(PAGE.read_text()) for name in re.findall(r"`([^`]+)`", sentence.replace("\n", " "))}
    assert {name for name in cited if "/" not in name and not name.startswith("SUTLER_")} - known == set()


GENERAL = ("report", "hotpath", "malloc_usable_size", "compute", "MMT over")
TABLE = "<!-- table T -->\n\n| | a |\n|---|---:|\n| row | 1,234 ±5% |\n\n<!-- end -->\n\n"


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("Row `row` of `T` has 1,234.", 0),
        ("Row `row` of `T` has 1,235.", 1),
        ("It has 1,234.", 1),
        ("In `U` it has 1,234.", 1),
        ("It is twice as fast.", 1),
        ("As in table 7.2, designs 1 to 6 and chapter 10 of 2010 say.", 0),
        ("> The paper has 116 ns.", 0),
        ("| the paper | 0.84 |", 0),
        ("First `T` has 1,234. Then 77.", 1),
    ],
)
def test_a_figure_without_its_table_is_found(text: str, wrong: int) -> None:
    assert len(uncited(TABLE + text)) == wrong


def program(name: str, values: dict[str, list[float]], counted: bool = False, extra: dict[str, str] = {}) -> Program:
    runs = [
        Run(library, "ok", "", wall_s=1, round=turn, extra={"ns_per_op": str(value), **extra})
        for library, row in values.items()
        for turn, value in enumerate(row)
    ]
    return Program("s", name, "ns_per_op", "lower", (), None, tuple(runs), len(runs), "g", counted)


@pytest.mark.parametrize(
    "ours, base, condition, says",
    [
        ([10, 10.1, 9.9], [5, 5.1, 4.9], {"above": 1}, claims.MET),
        ([10, 10.1, 9.9], [5, 5.1, 4.9], {"below": 1}, claims.REFUTED),
        ([10, 10.1, 9.9], [5, 5.1, 4.9], {"above": 2}, claims.OPEN),
        ([5, 20, 9], [5, 5.1, 4.9], {"above": 1}, claims.OPEN),
        ([10, 10], [5, 5], {"above": 1}, claims.OPEN),
        ([], [5, 5, 5], {"above": 1}, claims.UNKNOWN),
        ([10, 10.1, 9.9], [5, 5.1, 4.9], {"between": [1.5, 3]}, claims.MET),
        ([10, 10.1, 9.9], [5, 5.1, 4.9], {"between": [3, 4]}, claims.REFUTED),
        ([10, 10.1, 9.9], [5, 5.1, 4.9], {"between": [1, 1.5]}, claims.REFUTED),
        ([10, 10.1, 9.9], [5, 5.1, 4.9], {"between": [2, 4]}, claims.OPEN),
    ],
)
def test_the_interval_decides(ours: list[float], base: list[float], condition: dict, says: str) -> None:
    one = program("one", {"a": ours, "b": base})
    condition = {"of": "a", "to": "b", **condition}
    assert claims.decide(claims.interval([one], condition), condition) == says


def test_a_count_needs_no_rounds() -> None:
    condition = {"of": "a", "to": "b", "above": 1}
    measured = claims.interval([program("one", {"a": [10], "b": [5]}, counted=True)], condition)
    assert claims.decide(measured, condition, counted=True) == claims.MET
    assert claims.decide(measured, condition) == claims.OPEN


def test_rows_and_figures_can_be_named() -> None:
    few, many = program("few", {"a": [4, 4, 4]}), program("many", {"a": [8, 8, 8]}, extra={"waits": "2"})
    across = {"of": "a", "row": "many", "to": "a", "to_row": "few", "above": 1}
    assert claims.interval([few, many], across).value == 2
    assert claims.interval([few, many], {"of": "a", "row": "many", "figure": "waits", "to": "a", "to_figure": "ns_per_op", "above": 0}).value == 0.25
    assert claims.interval([few, many], {"of": "a", "above": 0}).value == pytest.approx(32**0.5)


def test_a_count_of_nothing_is_one() -> None:
    none = program("none", {"a": [4, 4, 4]}, extra={"waits": "0"})
    condition = {"of": "a", "figure": "waits", "to": "a", "to_figure": "ns_per_op", "above": 0.001}
    assert claims.decide(claims.interval([none], condition), condition) == claims.REFUTED


def test_every_row_has_to_hold_where_the_paper_says_so() -> None:
    far, near, over = program("far", {"a": [2] * 5, "b": [8] * 5}), program("near", {"a": [7] * 5, "b": [8] * 5}), program("over", {"a": [9] * 5, "b": [8] * 5})
    condition = {"of": "a", "to": "b", "every": True, "below": 1}
    measured, what = claims.judge([far, near], condition)
    assert what == claims.MET and measured.value == pytest.approx(7 / 8)
    measured, what = claims.judge([far, over, near], condition)
    assert what == claims.REFUTED and measured.value == pytest.approx(9 / 8)
    assert claims.judge([far, over, near], {"of": "a", "to": "b", "below": 1})[1] == claims.MET
    assert claims.words(condition) == "a, every row / b < 1"
    measured, what = claims.judge([far, over], {"of": "a", "to": "b", "every": True, "above": 0.2})
    assert what == claims.MET and measured.value == pytest.approx(2 / 8)


def test_a_verdict_takes_all_conditions() -> None:
    met, no, open_, unknown = claims.MET, claims.REFUTED, claims.OPEN, claims.UNKNOWN
    assert claims.verdict([met, met]) == "reproduced"
    assert claims.verdict([no, no]) == claims.verdict([no, open_]) == "not reproduced"
    assert claims.verdict([met, no]).startswith("in part: 1 of 2")
    assert claims.verdict([met, open_]) == claims.verdict([open_]) == "not to be told"
    assert claims.verdict([met, unknown]) == "not measured"


def test_the_table_of_claims_is_written(folder_of) -> None:  # noqa: F811
    made = folder_of("a", {"one": "g"}, ["glibc", "sutler"], lambda p, name, t: 5.0 if name == "sutler" else 10.0, {"g": {}})
    found = results.load(made)
    row = {"paper": "P, 1", "says": "half the time", "rows": "g", "holds": [{"of": "sutler", "to": "glibc", "below": 0.6}]}
    found.about["suites"]["made"]["claims"] = [row]
    text = publish.tables(found)["made, claims"]
    assert "| half the time | P, 1 | g | sutler / glibc < 0.6 | 0.50 (0.50 to 0.50) met | reproduced |" in text


def test_a_sweep_is_shown_over_its_first_row(folder_of) -> None:  # noqa: F811
    made = folder_of("a", {"s, 1 t": "g", "s, 4 t": "g"}, ["glibc"], lambda p, name, t: 9.0 if "1" in p else 3.0, {"g": {}})
    found = results.load(made)
    swept = [Program(**{**one.__dict__, "sweep": ("s", "t", float(n))}) for one, n in zip(found.programs, (1, 4))]
    found = Results(found.folder, found.about, found.libraries, tuple(swept))
    assert "| s, 4 t, over 1 | 3.00 (3.00-3.00) |" in publish.tables(found)["g, scaling"]


def test_a_claim_about_nothing_is_refused(suite_folder: Path) -> None:  # noqa: F811
    suite = '[[group]]\nname = "g"\n[[program]]\nname = "p"\ngroup = "g"\nrun = ["true"]\n[[claim]]\npaper = "P"\nsays = "s"\nrows = "%s"\nholds = [%s]\n'
    (suite_folder / "small.toml").write_text(suite % ("g", '{ of = "glibc", row = "p", above = 1 }'))
    assert len(suites.load("small").claims) == 1
    for rows, holds in (
        ("h", '{ of = "glibc", above = 1 }'),
        ("g", ""),
        ("g", '{ of = "nobody", above = 1 }'),
        ("g", '{ of = "glibc", row = "q", above = 1 }'),
        ("g", '{ of = "glibc", above = 1, below = 2 }'),
        ("g", '{ of = "glibc", abvoe = 1 }'),
        ("g", '{ of = "glibc" }'),
    ):
        (suite_folder / "small.toml").write_text(suite % (rows, holds))
        with pytest.raises(ToolError, match="claim 's'"):
            suites.load("small")
