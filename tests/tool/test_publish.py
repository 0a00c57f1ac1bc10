# SPDX-License-Identifier: MIT
"""Tables written into a page, and two runs compared: on runs whose figures are made up here, so that the answer is known."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Callable, Mapping, Sequence

import pytest
from conftest import printed
from sutler_tool import agreement, publish, results
from sutler_tool.libraries import Library
from sutler_tool.measure import CSV_COLUMNS, Run, csv_row
from sutler_tool.paths import ToolError

MACHINE = {"date": "2026-01-02 03:04 UTC", "cpu": "Test CPU", "processors": "2", "kernel": "6.1.0-x", "source": "abc1234"}
Figure = Callable[[str, str, int], float]


@pytest.fixture
def folder_of(tmp_path: Path):
    """Writes what `bench` would have written: make(name, programs, libraries, figure(program, library, round))."""

    def make(
        name: str,
        programs: Mapping[str, str],
        libraries: Sequence[str],
        figure: Figure,
        groups: Mapping[str, dict] = {},
        rounds: int = 5,
        better: str = "lower",
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        rows = {
            program: {"figure": "ns_per_op", "better": better, "also": ["longest_us"], "sweep": None, "group": group}
            for program, group in programs.items()
        }
        about = {
            "machine": MACHINE,
            "command": "./sutler bench made --out /somewhere/else --library=/home/me/lib.so --aa",
            "suites": {"made": {"title": "Made up", "about": "", "rounds": rounds, "groups": groups, "programs": rows}},
            "libraries": {library: {"preload": [f"/{library.split('-')[0]}.so"]} for library in libraries},
        }
        (folder / "about.json").write_text(json.dumps(about))
        with (folder / "runs.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, CSV_COLUMNS)
            writer.writeheader()
            for turn in range(rounds):
                for program in programs:
                    for library in libraries:
                        value = figure(program, library, turn)
                        status = "ok" if value > 0 else "crashed"
                        extra = {"ns_per_op": str(value), "longest_us": "7"}
                        run = Run(library, status, "SIGSEGV" * (value <= 0), wall_s=1, peak_bytes=1 << 20, round=turn, extra=extra)
                        writer.writerow(csv_row(run, Library(library), ["made"], "made", program))
        return folder

    return make


def table_of(folder: Path, name: str) -> dict[str, list[str]]:
    """A generated table as rows of cells, by the first cell."""
    text = publish.tables(results.load(folder))[name]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return {cells[0]: cells[1:] for cells in ([word.strip() for word in line.strip("|").split("|")] for line in lines)}


def test_another_build_of_the_subject_is_no_rival_of_its(folder_of) -> None:
    times = {"glibc": 10.0, "sutler": 8.0, "fast": 4.0, "build": 1.0}
    group = {"subject": "sutler", "under": list(times), "twins": ["build"]}
    made = folder_of("a", {"one": "g"}, list(times), lambda p, name, t: times[name], {"g": group})
    assert table_of(made, "g")["one [ns]"][-1] == "**2.00** fast"


def test_medians_ratios_and_losses(folder_of) -> None:
    times = {"glibc": 10.0, "sutler": 8.0, "fast": 4.0, "sutler-off": 1.0, "glibc-again": 10.1}
    made = folder_of("a", {"one": "", "two": ""}, list(times), lambda p, name, t: times[name])
    rows = table_of(made, "made")
    assert rows[""] == ["glibc", "sutler", "fast", "sutler-off", "sutler / glibc", "sutler / fast", "sutler / sutler-off", "/ best other"]
    cells = rows["one [ns]"]
    assert cells[:4] == ["10.0 ±0.0%", "8.00 ±0.0%", "4.00 ±0.0%", "1.00 ±0.0%"]
    assert cells[4] == "0.80 (0.80-0.80)", "a win is plain"
    assert cells[5] == "**2.00 (2.00-2.00)**", "a loss is bold"
    assert cells[7] == "**2.00** fast", "the same library with other settings is no rival"
    assert rows["geometric mean"][5] == "**2.00 (2.00-2.00)**"
    assert rows["– longest_us"][0] == "7.00 ±0.0%"


def test_where_more_is_better_less_is_the_loss(folder_of) -> None:
    times = {"glibc": 10.0, "sutler": 8.0}
    made = folder_of("a", {"one": ""}, list(times), lambda p, name, t: times[name], better="higher")
    assert table_of(made, "made")["one [ns, higher is better]"][2] == "**0.80 (0.80-0.80)**"


def test_a_crash_is_no_figure(folder_of) -> None:
    made = folder_of("a", {"one": ""}, ["glibc", "sutler"], lambda p, name, t: 0.0 if name == "sutler" else 5.0)
    cells = table_of(made, "made")["one [ns]"]
    assert cells[1] == "crashed 5 of 5 (SIGSEGV)" and cells[2] == "-"


def test_groups_have_tables_of_their_own(folder_of) -> None:
    groups = {
        "first": {"title": "First", "under": ["glibc", "x"], "base": "glibc"},
        "second": {"title": "Second", "under": ["x", "y"], "base": "x"},
    }
    made = folder_of(
        "a", {"one": "first", "two": "second"}, ["glibc", "x", "y"], lambda p, name, t: {"glibc": 2, "x": 4, "y": 1}[name], groups
    )
    assert set(name for name in publish.tables(results.load(made)) if "," not in name) == {"first", "second"}
    assert table_of(made, "first")["one [ns]"][2] == "**2.00 (2.00-2.00)**"
    assert table_of(made, "second")[""] == ["x", "y", "y / x"]
    assert table_of(made, "second")["two [ns]"][2] == "0.25 (0.25-0.25)"


def test_a_group_may_show_ratios_only(folder_of) -> None:
    """Of the medians the base's alone is shown: seven contenders fit on a page."""
    groups = {"few": {"under": ["glibc", "sutler", "mimalloc"], "base": "mimalloc", "ratios_only": True}}
    figure = lambda program, library, turn: {"glibc": 40.0, "sutler": 10.0, "mimalloc": 20.0}[library]  # noqa: E731
    folder = folder_of("run", {"one": "few", "two": "few"}, ["glibc", "sutler", "mimalloc"], figure, groups)
    cells = table_of(folder, "few")
    assert cells[""] == ["mimalloc", "glibc / mimalloc", "sutler / mimalloc"]
    assert cells["one [ns]"] == ["20.0 ±0.0%", "**2.00 (2.00-2.00)**", "0.50 (0.50-0.50)"]
    assert len(cells["geometric mean"]) == 3


def test_a_page_is_filled_and_the_rest_of_it_kept(console, folder_of, tmp_path: Path) -> None:
    made = folder_of("a", {"one": ""}, ["glibc", "sutler", "glibc-again"], lambda p, name, t: 5.0)
    page = tmp_path / "page.md"
    before = "# Mine\n\nprose\n\n<!-- table made -->\nold figures\n<!-- end -->\n\nmore prose\n\n"
    other = "<!-- table another -->\nkept\n<!-- end -->\n<!-- table made, memory -->\n<!-- end -->\n"
    page.write_text(before + other)
    found = results.load(made)
    said: list[str] = []
    assert publish.publish(found, page, said.append) == 0
    text = page.read_text()
    assert text.startswith("# Mine\n\nprose\n\n<!-- table made -->\n") and "more prose" in text
    assert "old figures" not in text and "<!-- table another -->\nkept\n<!-- end -->" in text
    assert text.count("<!-- end -->") == 3 and "Peak resident memory, MiB." in text
    for word in ("2026-01-02", "abc1234", "Test CPU", "Linux 6.1.0", "5 rounds", "glibc against itself: 1.00 to 1.00"):
        assert word in text, word
    assert "`./sutler bench made --aa`" in text and "/somewhere" not in text and "/home" not in text
    publish.publish(found, page, said.append)
    assert page.read_text() == text, "filling twice changes nothing"


def test_a_missing_mark_is_told_and_an_open_one_refused(folder_of, tmp_path: Path) -> None:
    found = results.load(folder_of("a", {"one": ""}, ["glibc", "sutler"], lambda p, name, t: 5.0))
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    said: list[str] = []
    assert publish.publish(found, page, said.append) == 1
    assert any("no place for made" in line and "<!-- table made -->" in line for line in said)
    for text in ("<!-- table made -->\n", "<!-- table made -->\n<!-- table b -->\n<!-- end -->\n"):
        page.write_text(text)
        with pytest.raises(ToolError, match="no '<!-- end -->'"):
            publish.publish(found, page, said.append)
        assert page.read_text() == text
    with pytest.raises(ToolError, match="cannot be read"):
        publish.publish(found, tmp_path / "absent.md", said.append)


PROGRAMS = {f"p{i}": "" for i in range(40)}


def noisy(seed: int, drift: float = 1.0, slower: Mapping[str, float] = {}) -> Figure:
    source = random.Random(seed)
    return lambda program, library, turn: 10 * drift * slower.get(library, 1.0) * source.lognormvariate(0, 0.03)


def compared(console, folder_of, one: Figure, two: Figure) -> tuple[int, str]:
    pair = [results.load(folder_of(name, PROGRAMS, ["glibc", "sutler"], figure)) for name, figure in (("a", one), ("b", two))]
    return agreement.agreement(console, *pair), printed(console)


def test_equal_runs_agree(console, folder_of) -> None:
    code, said = compared(console, folder_of, noisy(1), noisy(2))
    assert code == 0 and "The two runs agree" in said


def test_a_machine_that_slowed_down_is_seen_in_the_medians_only(console, folder_of) -> None:
    code, said = compared(console, folder_of, noisy(1), noisy(2, drift=1.5))
    assert code == 1 and "0 of 80 medians agree" in said
    assert "The ratios agree, the absolute figures do not" in said and "Compare ratios" in said


def test_an_allocator_that_changed_is_seen(console, folder_of, tmp_path: Path) -> None:
    code, said = compared(console, folder_of, noisy(1), noisy(2, slower={"sutler": 1.5}))
    assert code == 1 and "do not agree: too many ratios" in said
    assert "0 of 40 ratios agree" in said and (tmp_path / "a" / agreement.FILE).read_text().count("APART") >= 80


def test_runs_without_anything_in_common(console, folder_of) -> None:
    one = results.load(folder_of("a", {"one": ""}, ["glibc"], lambda p, name, t: 1.0))
    two = results.load(folder_of("b", {"two": ""}, ["glibc"], lambda p, name, t: 1.0))
    with pytest.raises(ToolError, match="nothing can be compared"):
        agreement.agreement(console, one, two)
