# SPDX-License-Identifier: MIT
"""The pages agree with the tables in the source and with each other; the links, files and commands in them exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("papers/*.md"), *ROOT.glob("*/README.md")])
OPTIONS = re.findall(r'^OPTION\((\w+), "([\w,]+)", \w+, (true|false),', (ROOT / "src/options/options.def").read_text(), re.M)
STATISTICS = re.findall(r"^STAT\((\w+),", (ROOT / "src/stats/stats.def").read_text(), re.M)


@pytest.mark.parametrize("name, choices, settable", OPTIONS, ids=[row[0] for row in OPTIONS])
def test_each_option_is_documented(name: str, choices: str, settable: str) -> None:
    rows = [line for line in (ROOT / "docs/options.md").read_text().splitlines() if f"`SUTLER_{name.upper()}`" in line]
    assert len(rows) == 1
    cells = rows[0].split("|")
    assert re.findall(r"`(\w+)`", cells[2].split("(")[0]) == choices.split(",")
    assert ("*" in cells[1]) == (settable == "true")


def test_no_option_is_documented_that_is_none() -> None:
    names = re.findall(r"^\| `SUTLER_(\w+)`", (ROOT / "docs/options.md").read_text(), re.M)
    assert sorted(names) == sorted(row[0].upper() for row in OPTIONS)


def test_statistics_named_in_tuning_exist() -> None:
    table = (ROOT / "docs/tuning.md").read_text().split("## Reading SUTLER_STATS=1")[1].split("\n## ")[0]
    named = [name for row in re.findall(r"^\| (`.*?`) \|", table, re.M) for name in re.findall(r"`(\w+)`", row)]
    assert set(named) - {"process", "sync", "sync_reason"} <= set(STATISTICS) and len(named) > 10


MITIGATIONS = re.findall(
    r'MITIGATION\((\w+), (true|false), "([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\)',
    (ROOT / "src/marks/mitigations.def").read_text(),
)


def test_mitigations_are_documented_as_they_are() -> None:
    page = (ROOT / "docs/security.md").read_text()
    rows = [
        f"| `{name}` | {'on' if on == 'true' else 'off'} | {stops} | {cost} | `{test}` |"
        for name, on, cost, stops, test in MITIGATIONS
    ]
    assert "| row | default | what it stops | cost | test |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n" in page


@pytest.mark.parametrize("name, test", [(row[0], row[4]) for row in MITIGATIONS], ids=[row[0] for row in MITIGATIONS])
def test_each_mitigation_has_its_test(name: str, test: str) -> None:
    assert test == f"hardened.{name}"
    assert f'{{"{name}", {name}}}' in (ROOT / "tests/hardened/unit/mitigations.c").read_text()
    listed = re.search(r"foreach\(row IN ITEMS (.*?)\)", (ROOT / "tests/hardened/unit/CMakeLists.txt").read_text())
    assert listed is not None and name in listed.group(1).split()


CALL_SETS = {
    name.lower(): set(re.findall(r"CALL\((\w+)\)", body))
    for name, body in re.findall(
        r"#define CALLS_(\w+)\(CALL\)((?:.*\\\n)*.*)", (ROOT / "tests/support/call_sets.h").read_text()
    )
}


def test_system_calls_are_documented_by_need() -> None:
    table = (ROOT / "docs/security.md").read_text().split("\n## System calls")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| (`.*?`) \|", table, re.M)
    assert {name: set(re.findall(r"`(\w+)`", calls)) for name, calls in rows} == CALL_SETS


def test_every_system_call_is_in_a_set() -> None:
    # These two are about calls of the program's own, looked at on their way.
    foreign = {"credentials.c", "vfork.S"}
    sources = [path for pattern in ("src/**/*.c", "src/**/*.S") for path in ROOT.glob(pattern) if path.name not in foreign]
    made = {name for path in sources for name in re.findall(r"\b(?:SYS|__NR)_(\w+)\b", path.read_text())}
    assert made == set().union(*CALL_SETS.values())


def anchors(page: Path) -> set[str]:
    """The places a link into the page can name, made as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        if "://" in target:
            continue
        there = page.parent / target if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 120


def results_of_readme() -> list[tuple[str, str]]:
    """The figures of the README's table, each with the commit of its row."""
    section = (ROOT / "README.md").read_text().split("\n## Results")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    return [(cell.strip("*"), row[-1]) for row in rows[1:] for cell in row[1:-1] if cell != "-"]


@pytest.mark.parametrize("figure, commit", results_of_readme())
def test_results_stand_in_benchmarks(figure: str, commit: str) -> None:
    """Each figure of the README is a mean of a table of that commit."""
    tables = re.findall(r"<!-- table .*?<!-- end -->", (ROOT / "docs/benchmarks.md").read_text(), re.S)
    lines = [line for table in tables if f"commit {commit};" in table for line in table.splitlines()]
    means = [line for line in lines if line.startswith("| geometric mean")]
    assert any(re.search(rf"\| \**{re.escape(figure)} \(", line) for line in means)


SOURCE = re.compile(r"`(?:[\w-]+/)*[\w*-]+\.(?:c|h|S|def|py|pml|toml)\b(?=[`:])")
WRITTEN_ABOUT = [page for page in PAGES if "decisions" not in page.parts and page.name != "CHANGELOG.md"]


@pytest.mark.parametrize("page", WRITTEN_ABOUT, ids=[str(page.relative_to(ROOT)) for page in WRITTEN_ABOUT])
def test_files_named_exist(page: Path) -> None:
    named = {name.strip("`") for name in SOURCE.findall(page.read_text()) if "NAME" not in name}
    folders = [ROOT / name for name in ("src", "include", "tests", "bench", "papers", "tools")]
    assert not [
        name for name in named if not any(ROOT.glob(name)) and not any(any(f.glob(f"**/{name}")) for f in folders)
    ]


def steps_of_design() -> list[tuple[str, str]]:
    """The functions of the page's walks through malloc, free and purge, and the file each is said to be in."""
    section = (ROOT / "docs/design.md").read_text().split("\n### The same, function by function")[1].split("\n## ")[0]
    rows = re.findall(r"^\| \d+ \| (.*?) \| `(.*?)` \|$", section, re.M)
    return [(name, file) for names, file in rows for name in re.findall(r"`(\w+)`", names)]


@pytest.mark.parametrize("name, file", steps_of_design())
def test_each_step_is_where_the_design_says(name: str, file: str) -> None:
    source = (ROOT / "src" / file).read_text()
    definition = rf"^(?:[A-Za-z].*\b{name}\(.*[^;]|(?:FUNCTION|MALLOC) {name}\b.*)$"
    assert re.search(definition, source, re.M)


VERBS = set(re.findall(r"^ +\./sutler (\w+)", (ROOT / "sutler").read_text(), re.M))
COMMANDS = re.compile(r"(?:^ {4}|`|run: )\./sutler ([a-z]+)", re.M)


WORKFLOW = ROOT / ".github/workflows/ci.yml"


@pytest.mark.parametrize("page", [*WRITTEN_ABOUT, WORKFLOW], ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_named_exist(page: Path) -> None:
    assert set(COMMANDS.findall(page.read_text())) <= VERBS


def test_forge_runs_what_a_person_runs() -> None:
    commands = re.findall(r"run: (\S+(?: test --full)?)", WORKFLOW.read_text())
    assert commands == [".ci/run", "./sutler test --full"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


RETIRED = "stretch gate notify_at mailbox settle scrape emergency childless descriptor_of_slice slice_of_descriptor give_back"


@pytest.mark.parametrize("word", RETIRED.split())
def test_retired_words_stay_away(word: str) -> None:
    """Decision 23 says what each is called now; old decisions and the changelog keep them."""
    pages = [page for page in WRITTEN_ABOUT if "papers" not in page.parts]
    sources = [path for folder in ("src", "include") for path in (ROOT / folder).rglob("*.[chS]")]
    assert [path.name for path in (*pages, *sources) if re.search(rf"\b{word}\b", path.read_text(), re.I)] == []
