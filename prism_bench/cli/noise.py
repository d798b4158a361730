"""`prism-bench noise`: what does a build differ from itself by on this machine?"""

from typing import Annotated

import typer

from prism_bench import interrupts, options
from prism_bench.options import pairs
from prism_bench.options.tuned import TunedOption
from prism_bench.saving import Saver

NAME = "noise"


def command(
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: pairs.ProcessesOption = 5,
    seed: Annotated[int, typer.Option(help="of the dealing of processes into two sides")] = 0,
    limit_seconds: pairs.LimitOption = None,
    keep: pairs.KeepOption = None,
    tuned: TunedOption = False,
    noise: pairs.NoiseOption = pairs.DEFAULT_NOISE,
    json: options.JsonOption = False,
) -> None:
    """Measure the build against itself and keep the noise floors.

    Both sides in turn, case by case; compare, trend and check use the floors.
    """
    from prism_bench.analysis.noise import noise_of
    from prism_bench.analysis.noise_file import keep_noise
    from prism_bench.report.terminal.noise import noise_json, noise_view
    from prism_bench.run.sides import Choice, of_itself

    name = options.choose_backend(backend, quiet=json).name
    found = options.open_catalogue(catalogue)
    sides = of_itself(Choice(found, filter or (), tuple(label or pairs.usual_labels(name))))
    with interrupts.held():
        records, save = pairs.measured(sides.builds, pairs.Effort(name, processes, limit_seconds, keep, tuned))
        floors, keep_floors = noise_of(*records, seed=seed), Saver(lambda found: keep_noise(found, noise))
        path = keep_floors.finish(floors)
        if json:
            options.print_json({"path": path and str(path), **noise_json(floors)})
        else:
            options.out().print(noise_view(floors))
            options.out().print(f"noise floors: {path or 'not kept'}", highlight=False, soft_wrap=True)
        whole = floors.floors and all(record.complete for record in records)
        raise SystemExit(save.exit_code(keep_floors.exit_code(0 if whole else 2)))
