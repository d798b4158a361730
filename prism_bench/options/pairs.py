"""Options of the commands that measure two builds in turn."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench import options
from prism_bench.analysis.compare.verdict import MOST, START
from prism_bench.options.progress import progress_bar
from prism_bench.options.tuned import configured

if TYPE_CHECKING:
    from prism_bench.run.interleave import Build, Growth
    from prism_bench.run_record import RunRecord
    from prism_bench.saving import Saver
    from prism_bench.studies.pairs import PairEffort, Records

DEFAULT_NOISE = Path("reports/noise")
NoiseOption = Annotated[Path, typer.Option("--noise", help="Set the folder of the noise floors of machines.")]
ProcessesOption = Annotated[int, typer.Option(min=1, help="Measure each case in this many fresh processes.")]
StartOption = Annotated[
    int | None,
    typer.Option("--processes", min=1, help=f"Measure each side in this many processes; {START} to {MOST}, as needed."),
]
MostOption = Annotated[
    int | None,
    typer.Option("--most-processes", min=1, help="Add processes up to this number while cases are undecided."),
]


def pair_labels(labels: Sequence[str] | None, backend: str) -> tuple[str, ...]:
    """Return the given labels, else those that end while a person waits."""
    return options.chosen_labels(labels, ("S0", "S1") if backend == "cuda" else ("S0",))


def measured(
    builds: "tuple[Build, Build]", effort: "PairEffort", growth: "Growth | None" = None
) -> "tuple[tuple[RunRecord, RunRecord], Saver[Records, object]]":
    """Measure both builds with a progress bar; return the records and what keeps them."""
    from prism_bench.studies.pairs import measure_pair

    a, b = (configured(build.cases, effort.backend, effort.tuned) for build in builds)
    with progress_bar() as report:
        return measure_pair(builds, (a, b), effort, report, growth)
