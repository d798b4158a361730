"""Progress of the Python API's long calls: a bar in a notebook and on a terminal, nothing in a pipe or a file.

It is drawn when a step is done and at no other time: no thread draws while a launch is timed. A notebook's bar is plain
HTML, which is updated in place, so that no widget package is needed. PRISM_BENCH_PROGRESS=0 turns all of it off.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

Step = Callable[[str], None]  # a step begins, described in a few words
SWITCH = "PRISM_BENCH_PROGRESS"


@contextmanager
def shown_progress(title: str, steps: int) -> Iterator[Step]:
    """Yield a function that draws the beginning of each of `steps` steps; the bar goes when the block ends."""
    draw, clear = _canvas(title)
    begun = 0

    def step(words: str) -> None:
        nonlocal begun
        draw(min(begun, steps), steps, words)
        begun += 1

    try:
        yield step
    finally:
        if begun:
            clear()


_Canvas = tuple[Callable[[int, int, str], None], Callable[[], None]]


def _canvas(title: str) -> _Canvas:
    """Return what draws a bar here and what clears it."""
    if os.environ.get(SWITCH) != "0":
        display = _notebook_display()
        if display is not None:
            return _in_notebook(title, display)
        if sys.stderr is not None and sys.stderr.isatty():
            return _on_terminal(title)
    return lambda done, total, words: None, lambda: None


def _notebook_display() -> Any:
    """Return IPython's `display` inside a notebook's kernel; None elsewhere. It imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(sys.modules.get("IPython.display"), "display", None) if hasattr(shell, "kernel") else None


def _in_notebook(title: str, display: Any) -> _Canvas:
    handle: list[Any] = []

    def show(html: str) -> None:
        bundle = {"text/html": html, "text/plain": ""}
        if handle:
            handle[0].update(bundle, raw=True)
        else:
            handle.append(display(bundle, raw=True, display_id=True))

    def draw(done: int, total: int, words: str) -> None:
        show(f'<div>{escape(title)} <progress value="{done}" max="{total}"></progress> {escape(words)}</div>')

    return draw, lambda: show("")


def _on_terminal(title: str) -> _Canvas:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.fields[title]}", markup=False), BarColumn(bar_width=30), MofNCompleteColumn(),
               TimeElapsedColumn(), TextColumn("{task.description}", markup=False))  # fmt: skip
    console = Console(stderr=True, markup=False, emoji=False)
    bar = Progress(*columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False,
                   redirect_stderr=False)  # fmt: skip
    job = bar.add_task("", total=None, title=title)

    def draw(done: int, total: int, words: str) -> None:
        bar.start()
        bar.update(job, description=words, completed=done, total=total)
        bar.refresh()

    return draw, bar.stop
