"""The bar of a run: which case, how far, how long still. On standard error; where nobody looks, a line a minute."""

import time
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from prism_bench import options

LINE_SECONDS = 60.0


@contextmanager
def progress_bar():
    """Gives a function that takes `workbench.Progress` events."""
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

        def report(event):
            bar.update(job, description=event.task, total=event.total, completed=event.done, process=event.process + 1)

        yield report


def _lines(console):
    """A function that says how far it is once in LINE_SECONDS: a log shows where a job that was ended had come to."""
    began = said = time.monotonic()

    def report(event):
        nonlocal said
        now = time.monotonic()
        if now - said >= LINE_SECONDS:
            said = now
            far = f"{now - began:.0f} s: process {event.process + 1}, {event.done} of {event.total}: {event.task}"
            console.print(far, highlight=False, soft_wrap=True)

    return report
