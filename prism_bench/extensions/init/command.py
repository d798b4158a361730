"""`prism-bench init`: write the files that a repository needs to measure its kernels."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.errors import unknown

_WithOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="PARTS", help="Write files for asv, github, gitlab, nightly or pytest; separate by commas."
    ),
]


def command(
    folder: Annotated[Path, typer.Argument(help="Set up this folder.")] = Path(),
    source: Annotated[
        Path | None,
        typer.Argument(help="Write specs of CUDA and Triton kernels and PyTorch operators below this path."),
    ] = None,
    parts: _WithOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write the files that a project needs to measure its kernels.

    A configuration, a catalogue with an example kernel, and the files of --with. Existing files stay unchanged. Ends
    with 2 if all files exist already.
    """
    from prism_bench.extensions.init.project import PARTS, new_project, new_project_json, new_project_view

    wanted = [part.strip() for option in parts or () for part in option.split(",")]
    for part in wanted:
        if part not in PARTS:
            raise unknown("part", part, PARTS)
    made = new_project(folder, wanted, source)
    options.show(lambda: new_project_json(made), lambda: new_project_view(made), json=json)
    raise SystemExit(0 if made.written.wrote else 2)
