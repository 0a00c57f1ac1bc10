# SPDX-License-Identifier: MIT
"""The progress line all verbs share."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_EVERY_S = 30.0


class ProgressLine(Progress):
    """On a terminal one line that moves; in a file or a pipe a plain line every half minute."""

    _said_s = float("-inf")

    def update(self, task_id: TaskID, **fields: Any) -> None:
        super().update(task_id, **fields)
        self._say(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._say(task_id)

    def _say(self, task_id: TaskID) -> None:
        now = self.get_time()
        if self.console.is_terminal or now - self._said_s < LINE_EVERY_S:
            return
        self._said_s = now
        task = self._tasks[task_id]
        self.console.print(
            f"sutler: {task.description.strip()}, {task.completed:.0f} of {task.total or 0:.0f} done",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def progress_bar(console: Console, remaining: bool = False) -> ProgressLine:
    """`remaining` adds the time that is left."""
    return ProgressLine(
        TextColumn("{task.description}", table_column=None),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *([TextColumn("left"), TimeRemainingColumn()] if remaining else []),
        console=console,
        transient=True,
    )
