"""`prism-bench noise`: the difference of a build from itself on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.cli.measuring import TunedOption
from prism_bench.io import files
from prism_bench.io.files import Saver

NAME = "noise"


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: measuring.ProcessesOption = 5,
    seed: Annotated[int, typer.Option(help="Set the seed of the random order.")] = 0,
    time_limit: options.TimeLimitOption = None,
    records: options.RecordsOption = None,
    tuned: TunedOption = False,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    json: options.JsonOption = False,
) -> None:
    """Measure the build against itself and keep the noise floors.

    Both sides are measured in turn, case by case; compare, trend and check use the noise floors.
    """
    from prism_bench.analysis.compare.noise import Noise, keep_noise, noise_of
    from prism_bench.report.plain import noise_json
    from prism_bench.report.terminal.comparison import noise_view
    from prism_bench.run.builds import Choice, of_itself
    from prism_bench.workflows.pairs import PairEffort

    name = options.choose_backend(backend, quiet=json).name
    kernels = options.open_catalogue(catalogue)
    sides = of_itself(Choice(kernels, options.patterns(cases, filter), measuring.pair_labels(label, name)))
    with files.held():
        measured, save = measuring.measured(sides.builds, PairEffort(name, processes, time_limit, records, tuned))
        floors = noise_of(*measured, seed=seed)
        keep_floors: Saver[Noise, Path] = Saver(lambda measured_floors: keep_noise(measured_floors, noise))
        path = keep_floors.finish(floors)
        if json:
            options.print_json({"path": path and str(path), **noise_json(floors)})
        else:
            options.out().print(noise_view(floors))
            options.line(f"noise floors: {path or 'not kept'}")
        whole = floors.floors and all(record.complete for record in measured)
        raise SystemExit(save.exit_code(keep_floors.exit_code(0 if whole else 2)))
