"""The progress of a run on standard error: a bar on a terminal, one line a minute elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from prism_bench import options

if TYPE_CHECKING:
    from prism_bench.run import Progress as Event

LINE_SECONDS = 60.0


@contextmanager
def progress_bar() -> Iterator[Callable[["Event"], None]]:
    """Yield a function that shows the progress events of a run."""
    console = options.err()
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (
        TextColumn("process {task.fields[process]}"), BarColumn(bar_width=30), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        job = bar.add_task("starting", total=None, process=1)

        def report(event: "Event") -> None:
            bar.update(job, description=event.task, total=event.total, completed=event.done, process=event.process + 1)

        yield report


def _lines(console: Console) -> Callable[["Event"], None]:
    """Return a function that prints the progress once in LINE_SECONDS, so that a log shows how far a job was."""
    began = printed = time.monotonic()

    def report(event: "Event") -> None:
        nonlocal printed
        now = time.monotonic()
        if now - printed >= LINE_SECONDS:
            printed = now
            text = f"{now - began:.0f} s: process {event.process + 1}, {event.done} of {event.total}: {event.task}"
            console.print(text, highlight=False, soft_wrap=True)

    return report
