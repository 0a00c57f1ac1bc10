# SPDX-License-Identifier: MIT
"""`sutler report DIR`: tables (Markdown), plots, and one HTML page that needs nothing but itself.

Losses are shown as plainly as wins: every table has every program and every allocator of the run, crashes and wrong
results stand where the figure would have stood, and a line counts better, worse and no difference against each peer.
"""

from __future__ import annotations

import html
import math
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

from rich.console import Console

from . import packages, plots, results
from .paths import ToolError
from .results import Program, Results
from .stats import Interval

BASE, OURS = "glibc", "sutler"
PAGE, TABLES = "index.html", "tables.md"
UNITS = {"ns_per_op": "ns", "wall": "s", "cpu": "s", "peak": "MiB", "seconds": "s", "longest_us": "us"}

Table = tuple[str, list[str], list[list[str]]]


def number(value: float) -> str:
    """Three digits that mean something."""
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.3g}"


def cell(program: Program, library: str, figure: str, scale: float = 1.0) -> str:
    """A median, with half its interval's width as a percentage; or what went wrong."""
    trouble = program.trouble(library)
    middle = program.middle(library, figure)
    if middle is None:
        return trouble or "-"
    width = (middle.high - middle.low) / 2 / middle.value * 100 if middle.value else 0.0
    text = number(middle.value * scale) + (f" ±{width:.0f}%" if middle.rounds > 1 else "")
    return f"{text} ({trouble})" if trouble else text


def change(ratio: Interval) -> str:
    if not math.isfinite(ratio.value):
        return "-"
    return f"{ratio.value:.2f} ({ratio.low:.2f}-{ratio.high:.2f})" if ratio.rounds > 1 else f"{ratio.value:.2f}"


def figure_table(
    found: Results, programs: Sequence[Program], title: str = "", among: Sequence[str] = ()
) -> Table:
    names = list(among or found.libraries)
    rows = []
    for program in programs:
        unit = UNITS.get(program.figure, program.figure)
        note = "" if program.better == "lower" else ", higher is better"
        rows.append([f"{program.name} [{unit}{note}]", *(cell(program, name, program.figure) for name in names)])
        for key in program.also:
            rows.append([f"   {key}", *(cell(program, name, key) for name in names)])
    return title or "Medians (± half the 95 % interval)", ["program", *names], rows


def ratio_table(
    found: Results,
    programs: Sequence[Program],
    figure: Optional[str],
    title: str,
    among: Sequence[str] = (),
    base: str = BASE,
    bases: Mapping[str, str] = {},
) -> Table:
    """Ratios to glibc (or another base, or each to its own) with intervals, and their geometric mean."""
    pairs = [(name, bases.get(name, base)) for name in among or found.libraries if name != base]
    rows = [
        [program.name, *(change(program.ratio(name, of, figure or program.figure)) for name, of in pairs)]
        for program in programs
    ]
    rows.append(["geometric mean", *(change(found.mean(programs, name, of, figure)) for name, of in pairs)])
    heads = [name if of == base else f"{name} / {of}" for name, of in pairs]
    return title, ["program", *heads], rows


def cpu_table(found: Results, programs: Sequence[Program]) -> Table:
    """Cpu time of all threads, with the manager's own part apart."""

    def manager(program: Program, name: str) -> str:
        values = sorted(
            run.manager_s for run in program.runs if run.library == name and run.ok and run.manager_s is not None
        )
        return f" (manager {number(values[len(values) // 2])})" if values else ""

    names = list(found.libraries)
    rows = [
        [program.name, *(cell(program, name, "cpu") + manager(program, name) for name in names)] for program in programs
    ]
    return (
        "Cpu seconds, user + system, all threads; the manager's own part in brackets where there was one",
        ["program", *names],
        rows,
    )


def fault_table(found: Results, programs: Sequence[Program]) -> Table:
    names = list(found.libraries)
    rows = [[program.name, *(cell(program, name, "faults") for name in names)] for program in programs]
    return "Page faults of the program's own threads", ["program", *names], rows


def score_table(found: Results, programs: Sequence[Program]) -> Table:
    """How often Sutler is better, worse, or no different from each of the others."""
    rows = []
    for name in found.libraries:
        if name == OURS:
            continue
        both = [program for program in programs if not math.isnan(program.ratio(OURS, name, program.figure).value)]
        verdicts = [program.verdict(OURS, name) for program in both]
        worse = [program.name for program, verdict in zip(both, verdicts) if verdict < 0]
        rows.append(
            [
                name,
                str(verdicts.count(1)),
                str(verdicts.count(-1)),
                str(verdicts.count(0)),
                change(found.mean(both, OURS, name)),
                "; ".join(worse) or "-",
            ]
        )
    return (
        "Sutler against each, by the program's figure",
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


def group_tables(found: Results, programs: Sequence[Program], groups: Mapping[str, Any]) -> list[Table]:
    """For each group its figures and, where there is something to compare, the ratios to its base."""
    tables = []
    for name, row in groups.items():
        members = [program for program in programs if program.group == name]
        if not members:
            continue
        among = [word for word in row.get("under", found.libraries) if word in found.libraries]
        base = row.get("base", BASE)
        tables.append(figure_table(found, members, f"{row['title']}: medians. {row.get('about', '')}", among))
        if len(among) > 1 and base in among:
            bases = row.get("bases", {})
            tables.append(ratio_table(found, members, None, f"{row['title']}: ratio to {base}", among, base, bases))
    trouble = trouble_table(found, programs)
    return tables + ([trouble] if trouble else [])


def suite_tables(found: Results, programs: Sequence[Program], groups: Mapping[str, Any]) -> list[Table]:
    """All tables of one suite."""
    if groups:
        return group_tables(found, programs, groups)
    tables = [score_table(found, programs)] if OURS in found.libraries else []
    tables.append(figure_table(found, programs))
    tables.append(ratio_table(found, programs, None, "Ratio to glibc by the program's figure (95 % interval)"))
    tables.append(ratio_table(found, programs, "peak", "Peak resident memory, ratio to glibc (95 % interval)"))
    tables.append(
        ratio_table(
            found,
            programs,
            "mean",
            "Resident memory averaged over the run, ratio to glibc (95 % interval); - where too short to sample",
        )
    )
    tables.append(cpu_table(found, programs))
    tables.append(fault_table(found, programs))
    trouble = trouble_table(found, programs)
    return tables + ([trouble] if trouble else [])


def suite_plots(found: Results, name: str, programs: Sequence[Program]) -> list[tuple[str, Callable[[], plots.Figure]]]:
    """Names and makers of the pictures of one suite."""
    others = [library for library in found.libraries if library != BASE]

    def ratios(figure: Optional[str], title: str) -> Callable[[], plots.Figure]:
        rows = []
        for program in programs:
            found_ratios = {library: program.ratio(library, BASE, figure or program.figure) for library in others}
            rows.append(
                (program.name, {key: ratio for key, ratio in found_ratios.items() if math.isfinite(ratio.value)})
            )
        return lambda: plots.ratios_figure(rows, others, title)

    made = [
        (f"{name}-figure", ratios(None, "ratio to glibc by the program's figure (time: left is faster)")),
        (f"{name}-memory", ratios("peak", "peak resident memory, ratio to glibc (left is less)")),
    ]
    for sweep in dict.fromkeys(program.sweep[0] for program in programs if program.sweep):
        made.append((f"{name}-{sweep}", lambda sweep=sweep: plots.sweep_figure(found, programs, sweep)))
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
figure{margin:1.5rem 0}svg{max-width:100%;height:auto}
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
        groups = about.get("groups", {})
        tables = suite_tables(found, programs, groups)
        attempts, counted = (
            sum(program.attempts for program in programs),
            sum(len(program.runs) for program in programs),
        )
        disturbed = sum(run.disturbed for program in programs for run in program.runs)
        note = (
            f"{counted} runs count, {attempts - counted} were repeated because something else used the machine, "
            f"{disturbed} of those that count were disturbed all the same."
        )
        words.append(f"## {about['title']}\n\n{about['about']}\n\n{note}\n\n{markdown(tables)}")
        page.append(
            f"<h2>{html.escape(about['title'])}</h2><p>{html.escape(about['about'])}</p><p>{html.escape(note)}</p>"
        )
        page += [html_table(table) for table in tables]
        for picture, make in [] if groups else suite_plots(found, name, programs):
            plots.save(make(), found.folder / "plots" / f"{picture}.png")
            text = plots.svg_text(make())
            (found.folder / "plots" / f"{picture}.svg").write_text(text)
            page.append(f"<figure id='{html.escape(picture)}'>{text}</figure>")
    (found.folder / TABLES).write_text("\n".join(words))
    target = found.folder / PAGE
    target.write_text("\n".join(page) + "\n</html>\n")
    return target


def screenshot(page: Path, picture: Path, say) -> None:  # type: ignore[no-untyped-def]
    """Opens the page in headless Chromium and takes a picture of it."""
    packages.ensure("screenshot", say)
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        raise ToolError("no Chromium is here (Debian: apt-get install chromium)")
    height = 700 + 2600 * page.read_text().count("<h2>")
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


def agreement(console: Console, one: Results, other: Results) -> int:
    """Whether two runs of the same suites agree within their intervals; returns the number of figures that do not."""
    known = {(program.suite, program.name): program for program in other.programs}
    apart: list[str] = []
    count = 0
    for program in one.programs:
        twin = known.get((program.suite, program.name))
        for library in one.libraries:
            if twin is None or library not in other.libraries:
                continue
            mine, theirs = program.middle(library, program.figure), twin.middle(library, program.figure)
            if mine is None or theirs is None:
                continue
            count += 1
            if not mine.agrees(theirs):
                apart.append(
                    f"{program.suite}: {program.name}, {library}: "
                    f"{number(mine.value)} ({number(mine.low)}-{number(mine.high)}) "
                    f"and {number(theirs.value)} ({number(theirs.low)}-{number(theirs.high)})"
                )
    console.print(f"{count - len(apart)} of {count} figures agree within their intervals", style="bold")
    for line in apart:
        console.print(f"  apart: {line}", markup=False, soft_wrap=True)
    return len(apart)


def report(console: Console, folder: Path, picture: Optional[Path], against: Optional[Path]) -> int:
    """The verb."""
    say = lambda text: console.print(f"sutler: {text}", markup=False, highlight=False, soft_wrap=True)  # noqa: E731
    found = results.load(folder)
    page = render(found)
    say(f"tables: {folder / TABLES}")
    say(f"page: {page}")
    for name in dict.fromkeys(program.suite for program in found.programs):
        if OURS in found.libraries and not found.about["suites"][name].get("groups"):
            title, header, rows = score_table(found, found.suite(name))
            console.print(f"\n{name}: {title}", style="bold")
            for row in rows:
                line = f"  {row[0]}: better {row[1]}, worse {row[2]}, no difference {row[3]}; ratio {row[4]}"
                console.print(line + (f"; worse at: {row[5]}" if row[5] != "-" else ""), markup=False, soft_wrap=True)
    if picture:
        screenshot(page, picture, say)
        say(f"picture: {picture}")
    if against:
        return 1 if agreement(console, found, results.load(against)) else 0
    return 0
