"""What `compare` and `noise` share: options, and two builds measured in turn under one bar."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from prism_bench.analysis.sequential import MOST, START
from prism_bench.options.progress import progress_bar
from prism_bench.options.tuned import configured
from prism_bench.saving import Saver

DEFAULT_NOISE = Path("reports/noise")
NoiseOption = Annotated[Path, typer.Option("--noise", help="where the noise floors of machines are kept")]
ProcessesOption = Annotated[int, typer.Option(min=1, help="fresh processes that measure each side")]
StartOption = Annotated[
    int | None,
    typer.Option("--processes", min=1, help=f"processes that measure each side (from {START} to {MOST}, as needed)"),
]
MostOption = Annotated[
    int | None, typer.Option(min=1, help="processes a side for the cases that fewer leave undecided")
]
LimitOption = Annotated[
    float | None, typer.Option("--limit-seconds", min=1, help="start no pair of processes that would end later")
]
KeepOption = Annotated[Path | None, typer.Option(help="folder for the two records that were measured")]


@dataclass(frozen=True)
class Effort:
    """How two builds are measured: on which backend, in how many processes, for how long, what is kept, and whether
    either is launched by this machine's choices.
    """

    backend: str
    processes: int
    limit: float | None = None
    keep: Path | None = None
    tuned: bool = False


def usual_labels(backend: str) -> tuple[str, ...]:
    """The labels without `--label`: those a person waits for."""
    return ("S0", "S1") if backend == "cuda" else ("S0",)


def measured(builds, effort: Effort, growth=None):
    """The records of both builds, and what keeps them where that is asked for, after every pair of processes; with
    `growth` the undecided cases are measured in more of them.
    """
    from prism_bench import store
    from prism_bench.run import Settings
    from prism_bench.run.interleave import interleaved, pair_settings

    chosen = [configured(build.cases, effort.backend, effort.tuned) for build in builds]
    builds = tuple(replace(build, cases=one.cases) for build, one in zip(builds, chosen, strict=True))
    settings = pair_settings(Settings(processes=effort.processes))

    places = {
        letter: store.RecordPlace(effort.keep, effort.keep / f"{letter}.json.gz") for letter in "ab" if effort.keep
    }

    def named(records):
        return [replace(record, tuning=dict(one.told)) for record, one in zip(records, chosen, strict=True)]

    def kept(records):
        return [place.save(record) for place, record in zip(places.values(), named(records), strict=False)]

    save = Saver(kept)
    with progress_bar() as report:
        records = interleaved(builds, effort.backend, settings, report, limit=effort.limit, keep=save, growth=growth)
    save.finish(records)
    return named(records), save
