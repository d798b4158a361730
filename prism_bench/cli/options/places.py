"""Places that measure: the GPU of this process, or, by an extension, the boards of a fleet."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from prism_bench.cli import options
from prism_bench.cli.options import pairs
from prism_bench.errors import UsageError
from prism_bench.extension import offered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prism_bench.catalogue import Catalogue
    from prism_bench.cli.options.announcement import DescribedBackend, EarlierRecords
    from prism_bench.io.saving import Saver
    from prism_bench.record.run_record import RunRecord
    from prism_bench.run import Settings
    from prism_bench.run.interleave import Growth
    from prism_bench.run.sides import Sides
    from prism_bench.spec.case import Case
    from prism_bench.workflows.pairs import PairEffort, PairJudge, Records
    from prism_bench.workflows.trials import Bench
    from prism_bench.workflows.tuning_session import TuningPlan, TuningResult

FleetOption = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        metavar="SPEC",
        help="Share the kernels among many GPUs: local, tcp://HOST:PORT, slurm:JOBS or ssh:HOST,HOST.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, max=1024, help="Use so many workers of this host; default: one for each GPU."),
]


@dataclass(frozen=True)
class PairPlan:
    """What is measured: both `sides`, with what `effort`, and what decides on more processes, here or on a fleet."""

    sides: "Sides"
    effort: "PairEffort"
    growth: "Growth"
    judge: "PairJudge"


class FleetPlace(Protocol):
    """Many boards as one place to measure, which shows its progress."""

    @property
    def backend(self) -> "DescribedBackend":
        """The backend of all boards."""
        ...

    @property
    def boards(self) -> int:
        """How many boards measure."""
        ...

    def run(
        self, catalogue: "Catalogue", cases: "Sequence[Case]", settings: "Settings", lanes: int | None,
        earlier: "EarlierRecords", keep: "Callable[[RunRecord], object]",
    ) -> "RunRecord":  # fmt: skip
        """Measure the cases on all boards; return one record. `keep` gets incomplete ones on the way."""
        ...

    def compare(self, plan: "PairPlan") -> "tuple[Records, Saver[Records, object]]":
        """Measure both sides of the plan; return the records and what keeps them."""
        ...

    def tune(
        self, bench: "Bench", plan: "TuningPlan", cases: "Sequence[Case]", noise: "Path",
        save: "Callable[[TuningResult], object]",
    ) -> "TuningResult":  # fmt: skip
        """Tune the cases; `noise` is the folder of noise floors, `save` gets interim results."""
        ...


def opened_fleet(
    fleet: str, workers: int | None, backend: str, catalogue: Path, *, quiet: bool
) -> AbstractContextManager[FleetPlace]:
    """Return what opens the fleet that the words name; a UsageError where no extension measures on fleets."""
    opened = offered("fleet")
    if opened is None:
        raise UsageError(f"--fleet {fleet}: no extension that measures on many GPUs is installed")
    return opened(fleet, workers, backend, catalogue, quiet=quiet)


@dataclass(frozen=True)
class PairPlace:
    """Where pairs are measured: on the GPU of this process, or on the boards of a fleet."""

    backend: "DescribedBackend"
    fleet: "FleetPlace | None" = None

    @property
    def name(self) -> str:
        """The name of the backend."""
        return self.backend.name

    def require(self, effort: "PairEffort") -> None:
        """Raise a UsageError for an option that a fleet has no meaning for."""
        given = {"--tuned": effort.tuned, "--time-limit": effort.limit is not None}
        if self.fleet and any(given.values()):
            raise UsageError(f"{next(name for name, one in given.items() if one)}: leave it out with --fleet")

    def measured(self, plan: PairPlan) -> "tuple[tuple[RunRecord, RunRecord], Saver[Records, object]]":
        """Measure both sides; return the records and what keeps them."""
        return self.fleet.compare(plan) if self.fleet else pairs.measured(plan.sides.builds, plan.effort, plan.growth)


@contextmanager
def opened_place(
    fleet: str | None, workers: int | None, backend: str | None, catalogue: Path, *, quiet: bool
) -> Iterator[PairPlace]:
    """Yield the place that the options name; print what it is."""
    if fleet is None:
        if workers is not None:
            raise UsageError(f"--workers {workers}: it is for --fleet")
        yield PairPlace(options.choose_backend(backend, quiet=quiet))
        return
    with opened_fleet(fleet, workers, backend or "cuda", catalogue, quiet=quiet) as opened:
        yield PairPlace(opened.backend, opened)
