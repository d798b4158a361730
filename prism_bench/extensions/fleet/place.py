"""Fleet of a command with `--fleet`: its boards run, compare or tune; and the display of its progress."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prism_bench.cli import options
from prism_bench.cli.measuring import line_seconds
from prism_bench.io import files
from prism_bench.units import count_text, duration_text

if TYPE_CHECKING:
    from pathlib import Path

    from prism_bench.catalogue import Catalogue
    from prism_bench.cli.measuring import DescribedBackend, EarlierRecords
    from prism_bench.extensions.fleet.catalogue_run import FleetProgress
    from prism_bench.extensions.fleet.dispatch import BoardState
    from prism_bench.extensions.fleet.fleet import Fleet, FleetBoard
    from prism_bench.io.files import Saver
    from prism_bench.record.run_record import RunRecord
    from prism_bench.run import Settings
    from prism_bench.run.builds import Build
    from prism_bench.spec.case import Case
    from prism_bench.workflows.pairs import PairEffort, PairJudge, Records
    from prism_bench.workflows.tuning_session import Bench, TuningPlan, TuningResult


_FIRST_SECONDS = 2.0  # until the first plain line, which shows that the fleet works


@dataclass(frozen=True)
class FleetPlace:
    """Boards of an open fleet, and the backend as the first board describes it."""

    fleet: "Fleet"
    opened: "Sequence[FleetBoard]"
    backend: "DescribedBackend"

    @property
    def boards(self) -> int:
        """Number of boards that measure."""
        return len(self.opened)

    def run(
        self,
        catalogue: "Catalogue",
        cases: "Sequence[Case]",
        settings: "Settings",
        lanes: int | None,
        earlier: "EarlierRecords",
        keep: "Callable[[RunRecord], object]",
    ) -> "RunRecord":
        """Measure the cases on all boards; return one record."""
        from prism_bench.extensions.fleet.catalogue_run import FleetRun

        job = FleetRun(self.fleet, self.opened, catalogue, self.backend.name, cases, settings, lanes, earlier)
        with fleet_progress() as report:
            return job.run(report, keep)

    def compare(
        self, builds: "tuple[Build, Build]", effort: "PairEffort", looks: tuple[int, ...], judge: "PairJudge"
    ) -> "tuple[Records, Saver[Records, object]]":
        """Measure both builds; return the records and their saver."""
        from prism_bench.extensions.fleet.pairs import PairWork, measure_pairs
        from prism_bench.workflows.pairs import record_saver

        work = PairWork(builds, effort, looks, judge)
        with fleet_progress() as report:
            records = measure_pairs(self.fleet, self.opened, work, report)
        _remark(work.given_up)
        save = record_saver(effort)
        save.finish(records)
        return records, save

    def tune(
        self,
        bench: "Bench",
        plan: "TuningPlan",
        cases: "Sequence[Case]",
        noise: "Path",
        save: "Callable[[TuningResult], object]",
    ) -> "TuningResult":
        """Tune the cases; `noise` is the folder of noise floors, `save` gets interim results."""
        from prism_bench.extensions.fleet.pairs import TuningWork, tune_on

        work = TuningWork(bench, plan, cases, noise, save)
        with fleet_progress() as report:
            result = tune_on(self.fleet, self.opened, work, report)
        _remark(work.given_up)
        return result


@contextmanager
def opened_place(
    fleet: str, workers: int | None, backend: str, catalogue: "Path", *, quiet: bool
) -> Iterator[FleetPlace]:
    """Yield the fleet that the text names, once it can measure with `backend`.

    Print its boards, and the workers that measure nothing.
    """
    from prism_bench.extensions.fleet.cluster import parse
    from prism_bench.extensions.fleet.dispatch import boards_of
    from prism_bench.extensions.fleet.fleet import BoardBackend, opened

    print_line, spec = options.remark if quiet else options.line, parse(fleet, workers)
    options.remark(f"fleet {fleet}: waits for its workers")
    with ExitStack() as stack:
        with files.allowed():  # jobs of Slurm may wait for hours
            open_fleet = stack.enter_context(opened(spec, needs_gpu=backend == "cuda"))
            boards, remarks = boards_of(open_fleet, backend, catalogue)
        kind = boards[0].facts.get("device")
        titles = ", ".join(board.title for board in boards)
        print_line(f"backend {backend}: {kind}; fleet of {count_text(len(boards), 'board')}: {titles}")
        for remark in remarks:
            options.remark(remark, "yellow")
        yield FleetPlace(open_fleet, boards, BoardBackend(backend, boards[0]))


def _remark(given_up: "Sequence[str]") -> None:
    for reason in given_up:
        options.remark(reason, "yellow")


@contextmanager
def fleet_progress() -> "Iterator[Callable[[FleetProgress], None]]":
    """Yield a function that shows all boards: live on a terminal, elsewhere a line for each from time to time."""
    console, began = options.err(), time.monotonic()
    if not console.is_terminal:
        yield _lines(began)
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda progress: live.update(view(progress, time.monotonic() - began), refresh=True)


def view(progress: "FleetProgress", seconds: float) -> Table:
    """Return the table of a fleet: the total in the first line, then each board with its clock and activity."""
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True, max_width=24, overflow="ellipsis")
    grid.add_column(no_wrap=True, style="dim", justify="right")
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)  # cut first
    bar = ProgressBar(total=max(1, progress.total), completed=progress.done, width=30)
    grid.add_row(f"{progress.done} of {count_text(progress.total, 'case')}", duration_text(seconds), bar)
    for board in progress.boards:
        numbers = " ".join(filter(None, (_clock(board), _share(board))))
        cells = map(Text, (board.title, numbers, board.line))  # no markup: names have brackets
        grid.add_row(*cells, style="yellow" if board.lost else None)
    return grid


def _clock(board: "BoardState") -> str:
    return f"{board.clock / 1e6:.0f} MHz" if board.clock else ""


def _share(board: "BoardState") -> str:
    """Return the finished share of a board's job."""
    return f"{board.done / board.total:.0%}" if board.total else ""


def _lines(began: float) -> "Callable[[FleetProgress], None]":
    """Return a function that prints all boards soon after the start, then once in `line_seconds()`."""
    interval = line_seconds()
    following = min(_FIRST_SECONDS, interval)

    def show(progress: "FleetProgress") -> None:
        nonlocal following
        seconds = time.monotonic() - began
        if seconds < following:
            return
        following = seconds + interval
        options.remark(f"{seconds:.0f} s: {progress.done} of {count_text(progress.total, 'case')}")
        for board in progress.boards:
            text = ", ".join(filter(None, (board.title, _clock(board), _share(board), board.line)))
            options.remark(f"{seconds:.0f} s: {text}")

    return show
