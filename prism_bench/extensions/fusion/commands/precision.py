"""`prism-bench precision`: the precision of the stages of a fused kernel, by measured error."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.options import CASE_SECONDS, TimeoutOption, limited

if TYPE_CHECKING:
    from prism_bench.extensions.fusion.selection import PrecisionChoice


_ProgramsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CASES]...", help="Choose programs by name; default: all that declare 'within'."),
]
_WithinOption = Annotated[float | None, typer.Option(help="Allow this normwise error; default: that of the program.")]
_SampleOption = Annotated[
    Path | None, typer.Option(help="Read inputs by name from this NumPy .npz file; default: seeded random ones.")
]


def command(
    programs: _ProgramsArgument = None,
    filter: options.FilterOption = None,
    within: _WithinOption = None,
    sample: _SampleOption = None,
    label: Annotated[str, typer.Option("--label", "-l", help="Choose workload S0, S1 or S2.")] = "S0",
    timeout: TimeoutOption = CASE_SECONDS,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Choose the cheapest precision that is accurate enough.

    One whose error on sample data is within what the program declares.

    The error is that of the kernel on rounded operands against its float64 reference on unrounded ones. Costs are times
    on a GPU, elsewhere the bytes that must move. Ends with 1 where no precision is good enough.
    """
    from prism_bench.errors import UsageError
    from prism_bench.extensions.fusion.keeping import declarations
    from prism_bench.extensions.fusion.report.terminal import precision_json, precision_table
    from prism_bench.extensions.fusion.selection import Question, read_sample, select

    if within is not None and not within > 0:
        raise UsageError(f"--within is {within}: an error greater than 0, such as 1e-3")
    opened = options.open_catalogue(catalogue)
    names = options.patterns(programs, filter)
    declared = declarations(opened.folder, names)
    wanted = declared if names else [declaration for declaration in declared if declaration.program.within is not None]
    if not wanted:
        raise UsageError("no program declares 'within'; name one, with --within")
    target = options.choose_backend(backend, quiet=json)
    question = Question(label, within, read_sample(sample) if sample else None)
    choices: list[PrecisionChoice] = []
    for declaration in wanted:
        name = declaration.name
        if name not in opened.kernels:
            raise UsageError(f"program '{name}' has no kernel yet; `prism-bench fuse --write {name}` writes it")
        with limited(f"{name} at {label}", timeout):
            choices.append(select(declaration.program, opened.kernels[name], target, question))
    if json:
        options.print_json([precision_json(choice) for choice in choices])
    else:
        options.out().print(*map(precision_table, choices), sep="\n")
    raise SystemExit(0 if all(choice.chosen for choice in choices) else 1)
