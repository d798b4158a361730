"""The bar of a run: which case, how far, how long still. On standard error, and silent where nobody looks."""

from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from prism_bench.cli import options


@contextmanager
def progress_bar():
    """Gives a function that takes `workbench.Progress` events."""
    console = options.err()
    columns = (
        TextColumn("process {task.fields[process]}"), BarColumn(bar_width=30), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        job = bar.add_task("starting", total=None, process=1)

        def report(event):
            bar.update(job, description=event.task, total=event.total, completed=event.done, process=event.process + 1)

        yield report
