"""The progress of a run on standard error: a bar on a terminal; elsewhere a line a minute, and one for each stage."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from prism_bench.cli import options
from prism_bench.errors import UsageError
from prism_bench.units import duration_text

if TYPE_CHECKING:
    from prism_bench.run import Forecast
    from prism_bench.run import Progress as Event

SECONDS = "PRISM_BENCH_PROGRESS_SECONDS"
LINE_SECONDS = 60.0


@contextmanager
def progress_bar(expected: "Forecast | None" = None) -> Iterator[Callable[["Event"], None]]:
    """Yield a function that shows the progress events of a run; with a forecast, the time that is left by it."""
    console, left = options.err(), _time_left(expected) if expected else None
    if not console.is_terminal:
        yield _lines(console, left)
        return
    rest = TextColumn("{task.fields[left]}") if left else TimeRemainingColumn()
    columns = (
        TextColumn("{task.fields[stage]}"), BarColumn(bar_width=30), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("left"), rest, TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        job = bar.add_task("starting", total=None, stage="process 1", left="")

        def report(event: "Event") -> None:
            words = left(event) if left else ""
            bar.update(job, description=event.task, total=event.total, completed=event.done,
                       stage=_stage(event), left=words)  # fmt: skip

        yield report


def _stage(event: "Event") -> str:
    return event.stage or f"process {event.process + 1}"


def line_seconds() -> float:
    """Return the seconds between two lines: PRISM_BENCH_PROGRESS_SECONDS, or LINE_SECONDS."""
    written = os.environ.get(SECONDS)
    try:
        seconds = float(written) if written else LINE_SECONDS
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"{SECONDS}={written}: it is a number of seconds")
    return seconds


def _time_left(expected: "Forecast") -> Callable[["Event"], str]:
    """Return a function that returns in words how much time is left."""
    began = time.monotonic()
    return lambda event: duration_text(expected.left(event.done, time.monotonic() - began))


def _lines(console: Console, left: Callable[["Event"], str] | None) -> Callable[["Event"], None]:
    """Return a function that prints the progress once in a while, so that a log shows how far a job was."""
    began, interval = time.monotonic(), line_seconds()
    printed, stage = began, ""

    def report(event: "Event") -> None:
        nonlocal printed, stage
        now = time.monotonic()
        if now - printed >= interval or event.stage != stage:
            printed, stage = now, event.stage
            rest = f", about {left(event)} left" if left else ""
            where = f"{_stage(event)}, {event.done} of {event.total}{rest}"
            text = f"{now - began:.0f} s: {where}: {event.task}"
            console.print(text, highlight=False, soft_wrap=True)

    return report


@contextmanager
def status(words: str) -> Iterator[None]:
    """Show what the command does during the block: as a status on a terminal, elsewhere as a line."""
    console = options.err()
    if not console.is_terminal:
        console.print(words, highlight=False, soft_wrap=True)
    with console.status(words):
        yield
