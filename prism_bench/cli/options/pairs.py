"""Options of the commands that measure two builds in turn."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.analysis.compare.verdict import MOST, START
from prism_bench.cli import options
from prism_bench.cli.options.progress import progress_bar
from prism_bench.cli.options.tuned import configured

if TYPE_CHECKING:
    from prism_bench.catalogue import Catalogue
    from prism_bench.io.saving import Saver
    from prism_bench.record.run_record import RunRecord
    from prism_bench.run.interleave import Build, Growth
    from prism_bench.run.sides import Choice
    from prism_bench.workflows.pairs import PairEffort, Records

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


def not_run(old: str, cases: Sequence[str] = ()) -> str:
    """Return why changes of kernels are not measured where references run, and what is known without a GPU.

    `old` is the old side, a commit or a folder; `cases` are those that changed.
    """
    from prism_bench.spec.metric import STAND_INS

    kernels = list(dict.fromkeys(case.partition("[")[0] for case in cases))
    few = f" of {', '.join(kernels[:3])}{' and others' if len(kernels) > 3 else ''}" if kernels else ""
    name = STAND_INS["numpy_reference"].name
    what = "the source or launch" + few + " changed, which the backend does not run" if cases else "it runs no kernel"
    return (
        f"the backend numpy_reference runs the {name}, and {what}; "
        f"'prism-bench compile --against {old}' compares machine code, 'prism-bench verify --backend emulator' checks "
        "results, and times need a GPU"
    )


def choice_of(
    catalogue: "Catalogue",
    words: Sequence[str],
    labels: Sequence[str],
    environments: tuple[dict[str, str], dict[str, str]],
) -> "Choice":
    """Return the cases that both sides are measured in, with the environment of each."""
    from prism_bench.run.sides import Choice

    return Choice(catalogue, words, labels, environments)


def pair_labels(labels: Sequence[str] | None, backend: str) -> tuple[str, ...]:
    """Return the given labels, else those that end while a person waits."""
    return options.chosen_labels(labels, ("S0", "S1") if backend == "cuda" else ("S0",))


def measured(
    builds: "tuple[Build, Build]", effort: "PairEffort", growth: "Growth | None" = None
) -> "tuple[tuple[RunRecord, RunRecord], Saver[Records, object]]":
    """Measure both builds with a progress bar; return the records and what keeps them."""
    from prism_bench.workflows.pairs import measure_pair

    a, b = (configured(build.cases, effort.backend, effort.tuned) for build in builds)
    with progress_bar() as report:
        return measure_pair(builds, (a, b), effort, report, growth)
