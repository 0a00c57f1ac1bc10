# SPDX-License-Identifier: MIT
"""`sutler report DIR`: tables (Markdown), plots, and one HTML page that needs nothing but itself.

Losses are shown as plainly as wins: every table has every program and every allocator of the run, crashes and wrong
results stand where the figure would have stood, and a line counts better, worse and no difference against each peer.
"""

from __future__ import annotations

import html
import math
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

from rich.console import Console

from . import claims, packages, plots, results
from .agreement import agreement
from .libraries import SAME
from .paths import ToolError
from .publish import Layout, layouts, noise, publish
from .results import Program, Results
from .tables import cell, number, ratio_text, unit

BASE, OURS = "glibc", "sutler"
PAGE, TABLES = "index.html", "tables.md"

Table = tuple[str, list[str], list[list[str]]]


def figure_table(
    found: Results, programs: Sequence[Program], title: str = "", among: Sequence[str] = ()
) -> Table:
    names = list(among or found.libraries)
    rows = []
    for program in programs:
        shown = unit(program.figure)
        note = "" if program.better == "lower" else ", higher is better"
        rows.append([f"{program.name} [{shown}{note}]", *(cell(program, name, program.figure) for name in names)])
        for key in program.also:
            rows.append([f"   {key}", *(cell(program, name, key) for name in names)])
    return title or "Medians (± half the 95 % interval)", ["program", *names], rows


def ratio_table(
    found: Results,
    programs: Sequence[Program],
    figure: Optional[str],
    title: str,
    pairs: Sequence[tuple[str, str]],
    mean: bool = True,
) -> Table:
    """Ratios with intervals, one column for each pair of allocators, and their geometric mean."""
    rows = [
        [program.name, *(ratio_text(program.ratio(name, of, figure or program.figure)) for name, of in pairs)]
        for program in programs
    ]
    if mean:
        rows.append(["geometric mean", *(ratio_text(found.mean(programs, name, of, figure)) for name, of in pairs)])
    return title, ["program", *(name if of == BASE else f"{name} / {of}" for name, of in pairs)], rows


def cpu_table(found: Results, programs: Sequence[Program], among: Sequence[str] = ()) -> Table:
    """Cpu time of all threads, with the manager's own part apart."""

    def manager(program: Program, name: str) -> str:
        values = sorted(
            run.manager_s for run in program.runs if run.library == name and run.ok and run.manager_s is not None
        )
        return f" (manager {number(values[len(values) // 2])})" if values else ""

    names = list(among or found.libraries)
    rows = [
        [program.name, *(cell(program, name, "cpu") + manager(program, name) for name in names)] for program in programs
    ]
    return (
        "Cpu seconds, user + system, all threads; the manager's own part in brackets where there was one",
        ["program", *names],
        rows,
    )


def plain_table(
    found: Results, programs: Sequence[Program], among: Sequence[str], figure: str, title: str, scale: float = 1.0
) -> Table:
    """One figure that every run has."""
    names = list(among or found.libraries)
    return title, ["program", *names], [[p.name, *(cell(p, name, figure, scale) for name in names)] for p in programs]


MEMORY_SCALE = 1 / (1 << 20)


def cost_tables(found: Results, programs: Sequence[Program], among: Sequence[str] = ()) -> list[Table]:
    """What every run cost besides the figure it was made for: wall and cpu time, memory at its peak and averaged over
    the run, page faults."""
    return [
        plain_table(found, programs, among, "wall", "Wall time of the whole program, seconds"),
        cpu_table(found, programs, among),
        plain_table(found, programs, among, "peak", "Peak resident memory, MiB", MEMORY_SCALE),
        plain_table(
            found,
            programs,
            among,
            "mean",
            "Resident memory averaged over the run, MiB; - where too short to sample",
            MEMORY_SCALE,
        ),
        plain_table(found, programs, among, "faults", "Page faults of the program's own threads"),
    ]


def score_table(found: Results, programs: Sequence[Program], subject: str, among: Sequence[str]) -> Table:
    """How often the subject is better, worse, or no different from each of the others."""
    rows = []
    for name in among:
        if name in (subject, SAME.name):
            continue
        both = [program for program in programs if not math.isnan(program.ratio(subject, name, program.figure).value)]
        verdicts = [program.verdict(subject, name) for program in both]
        worse = [program.name for program, verdict in zip(both, verdicts) if verdict < 0]
        rows.append(
            [
                name,
                str(verdicts.count(1)),
                str(verdicts.count(-1)),
                str(verdicts.count(0)),
                ratio_text(found.mean(both, subject, name)),
                "; ".join(worse) or "-",
            ]
        )
    return (
        f"{'Sutler' if subject == OURS else subject} against each, by the program's figure",
        ["against", "better", "worse", "no difference shown", "geometric mean of the ratio", "where it is worse"],
        rows,
    )


def trouble_table(found: Results, programs: Sequence[Program]) -> Optional[Table]:
    rows = [
        [program.name, name, program.trouble(name)]
        for program in programs
        for name in found.libraries
        if program.trouble(name)
    ]
    return ("Runs that did not do their work", ["program", "allocator", "what happened"], rows) if rows else None


@dataclass(frozen=True)
class Section:
    """A group of programs, or a whole suite without groups: its tables, the less asked-for ones, and its pictures."""

    tables: list[Table]
    more: list[Table]
    pictures: list[tuple[str, Callable[[], plots.Figure]]]


def group_section(found: Results, suite: str, name: str, row: Mapping[str, Any], layout: Layout) -> Section:
    """A group's figures and, where there is something to compare, the ratios to its base."""
    members, among, pairs = layout.programs, layout.among, layout.pairs()
    title = row.get("title", name)
    tables = [figure_table(found, members, f"{title}: medians. {row.get('about', '')}", among)]
    if pairs:
        tables.append(ratio_table(found, members, None, f"{title}: ratio to {layout.base}", pairs, layout.mean))
    return Section(tables, cost_tables(found, members, among), suite_plots(f"{suite} {name}", members, layout))


def subject_section(found: Results, name: str, title: str, layout: Layout) -> Section:
    """One allocator against each of the others, on programs that are its business: how often better and worse, figures,
    time and memory over the base's."""
    members, among = layout.programs, layout.among
    pairs = [(library, layout.base) for library in among if library != layout.base]
    tables = [score_table(found, members, layout.subject, among), figure_table(found, members, title, among)]
    if layout.base in among:
        for figure, words in (
            (None, "the program's figure"),
            ("peak", "peak resident memory"),
            ("mean", "resident memory averaged over the run (- where too short to sample)"),
        ):
            tables.append(
                ratio_table(
                    found,
                    members,
                    figure,
                    f"Ratio to {layout.base}: {words} (95 % interval)",
                    pairs,
                    layout.mean or figure is not None,
                )
            )
    return Section(tables, cost_tables(found, members, among), suite_plots(name, members, layout))


def sections(found: Results, suite: str) -> list[Section]:
    """What the page shows of one suite, in its order."""
    groups = found.about["suites"][suite].get("groups") or {}
    made = []
    for name, of, layout in layouts(found):
        if of != suite:
            continue
        row = groups.get(name, {})
        if layout.subject:
            title = f"{row['title']}: medians. {row.get('about', '')}" if row else ""
            made.append(subject_section(found, name if name == suite else f"{suite} {name}", title, layout))
        else:
            made.append(group_section(found, suite, name, row, layout))
    decided = claims.table(found, suite)
    if decided[2]:
        made.insert(0, Section([decided], [], []))
    trouble = trouble_table(found, found.suite(suite))
    return made + ([Section([trouble], [], [])] if trouble else [])


def suite_plots(name: str, programs: Sequence[Program], layout: Layout) -> list[tuple[str, Callable[[], plots.Figure]]]:
    """Names and makers of the pictures: ratios to the base, of the figure and of memory, and a curve for each sweep."""
    others = [library for library in layout.among if library != layout.base]
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")

    def ratios(figure: Optional[str], title: str) -> Callable[[], plots.Figure]:
        rows = []
        for program in programs:
            each = {
                library: program.ratio(library, (layout.bases or {}).get(library, layout.base), figure or program.figure)
                for library in others
            }
            rows.append((program.name, {key: ratio for key, ratio in each.items() if math.isfinite(ratio.value)}))
        return lambda: plots.ratios_figure(rows, others, title)

    made = []
    if others and layout.base in layout.among:
        lower = all(program.better == "lower" for program in programs)
        side = " (left is better)" if lower else ""
        made = [
            (f"{stem}-figure", ratios(None, f"{name}: ratio to {layout.base} by the program's figure{side}")),
            (f"{stem}-memory", ratios("peak", f"{name}: peak resident memory, ratio to {layout.base} (left is less)")),
        ]
    for sweep in dict.fromkeys(program.sweep[0] for program in programs if program.sweep):
        made.append(
            (f"{stem}-{sweep}", lambda sweep=sweep: plots.sweep_figure(layout.among, programs, sweep))  # type: ignore[misc]
        )
    return made


def markdown(tables: Sequence[Table]) -> str:
    parts = []
    for title, header, rows in tables:
        parts.append(f"**{title}**\n")
        parts.append("| " + " | ".join(header) + " |")
        parts.append("|" + "|".join(["---"] + ["---:"] * (len(header) - 1)) + "|")
        parts += ["| " + " | ".join(word.replace("|", "\\|") for word in row) + " |" for row in rows]
        parts.append("")
    return "\n".join(parts)


def html_table(source: Table) -> str:
    title, header, rows = source
    head = "".join(f"<th>{html.escape(word)}</th>" for word in header)
    body = "\n".join("<tr>" + "".join(f"<td>{html.escape(word)}</td>" for word in row) + "</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f"<h3>{html.escape(title)}</h3>\n<div class='wide'>{table}</div>"


STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#222}
h2{margin-top:3rem;border-bottom:1px solid #ccc}h3{font-size:1rem;margin:1.6rem 0 .4rem}
table{border-collapse:collapse;font-size:.85rem}th,td{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child{text-align:left;white-space:pre}.wide{overflow-x:auto}
figure{margin:1.5rem 0}details{margin:1rem 0}summary{cursor:pointer}svg{max-width:100%;height:auto}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;font-size:.85rem}dd{margin:0}"""


def machine_rows(found: Results) -> list[tuple[str, str]]:
    rows = [(str(key), str(value)) for key, value in found.about.get("machine", {}).items()]
    return (
        rows
        + [("command", str(found.about.get("command", "")))]
        + ([("note", "stopped by the user")] if found.about.get("interrupted") else [])
    )


def render(found: Results) -> Path:
    """Writes tables, pictures and the page; returns the page."""
    words = ["# Benchmark results\n\n" + "\n".join(f"- {key}: {value}" for key, value in machine_rows(found)) + "\n"]
    page = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Sutler: benchmark results</title>",
        f"<style>{STYLE}</style><h1>Benchmark results</h1><dl>",
    ]
    page += [f"<dt>{html.escape(key)}</dt><dd>{html.escape(value)}</dd>" for key, value in machine_rows(found)]
    page.append("</dl>")
    for name in dict.fromkeys(program.suite for program in found.programs):
        about, programs = found.about["suites"][name], found.suite(name)
        counted = sum(len(program.runs) for program in programs)
        attempts = sum(program.attempts for program in programs)
        disturbed = sum(run.disturbed for program in programs for run in program.runs)
        note = (
            f"{counted} runs count, {attempts - counted} were repeated because something else used the machine, "
            f"{disturbed} of those that count were disturbed all the same. {noise(programs)}"
        )
        words.append(f"## {about['title']}\n\n{about['about']}\n\n{note}\n")
        page.append(
            f"<h2>{html.escape(about['title'])}</h2><p>{html.escape(about['about'])}</p><p>{html.escape(note)}</p>"
        )
        for section in sections(found, name):
            words.append(markdown([*section.tables, *section.more]))
            page += [html_table(table) for table in section.tables]
            for picture, make in section.pictures:
                plots.save(make(), found.folder / "plots" / f"{picture}.png")
                text = plots.svg_text(make())
                (found.folder / "plots" / f"{picture}.svg").write_text(text)
                page.append(f"<figure id='{html.escape(picture)}'>{text}</figure>")
            if section.more:
                page.append("<details><summary>Time, processor time, memory and page faults of these runs</summary>")
                page += [html_table(table) for table in section.more]
                page.append("</details>")
    (found.folder / TABLES).write_text("\n".join(words))
    target = found.folder / PAGE
    target.write_text("\n".join(page) + "\n</html>\n")
    return target


def page_height(text: str) -> int:
    """About how many pixels the page is high, so that its last table is in the picture; what is folded away has none."""
    open_text = re.sub(r"<details>.*?</details>", "<p></p>", text, flags=re.S)
    pictures = sum(float(points) * 4 / 3 + 60 for points in re.findall(r'<svg [^>]*?height="([0-9.]+)pt"', open_text))
    rows, titles = open_text.count("<tr>"), open_text.count("<h3>") + open_text.count("<h2>")
    return 500 + round(pictures) + 26 * rows + 60 * titles + 60 * text.count("<details>")


def screenshot(page: Path, picture: Path, say) -> None:  # type: ignore[no-untyped-def]
    """Opens the page in headless Chromium and takes a picture of it."""
    packages.ensure("screenshot", say)
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        raise ToolError("no Chromium is here (Debian: apt-get install chromium)")
    height = min(16_000, page_height(page.read_text()))  # Chromium draws no larger surface
    with tempfile.TemporaryDirectory(prefix="sutler-") as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={profile}",
            f"--window-size=1300,{height}",
            f"--screenshot={picture.resolve()}",
            page.resolve().as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0 or not picture.exists():
        raise ToolError(f"Chromium took no picture: {done.stderr.strip()[-300:]}")


def report(
    console: Console,
    folder: Path,
    picture: Optional[Path],
    against: Optional[Path],
    page_to_fill: Optional[Path] = None,
) -> int:
    """The verb."""
    say = lambda text: console.print(f"sutler: {text}", markup=False, highlight=False, soft_wrap=True)  # noqa: E731
    found = results.load(folder)
    page = render(found)
    say(f"tables: {folder / TABLES}")
    say(f"page: {page}")
    for name, suite, layout in layouts(found):
        if layout.subject:
            title, _, rows = score_table(found, layout.programs, layout.subject, layout.among)
            where = suite if name == suite else f"{suite}, {name}"
            console.print(f"\n{where}: {title}", style="bold", markup=False)
            for row in rows:
                line = f"  {row[0]}: better {row[1]}, worse {row[2]}, no difference {row[3]}; ratio {row[4]}"
                console.print(line + (f"; worse at: {row[5]}" if row[5] != "-" else ""), markup=False, soft_wrap=True)
    if picture:
        screenshot(page, picture, say)
        say(f"picture: {picture}")
    if page_to_fill:
        publish(found, page_to_fill, say)
    return agreement(console, found, results.load(against)) if against else 0
