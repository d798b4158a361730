"""`prism-bench fuse`: kernels generated from programs of named stages."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options

if TYPE_CHECKING:
    from prism_bench.extensions.fusion.keeping import Declaration, GeneratedFile


def command(
    programs: Annotated[
        list[str] | None, typer.Argument(metavar="[CASES]...", help="Choose programs by name; default: all.")
    ] = None,
    filter: options.FilterOption = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing and print what would change.")] = False,
    ptx: Annotated[bool, typer.Option(help="Keep PTX next to the sources, where NVRTC is installed.")] = True,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write the fused kernels that a catalogue declares.

    Programs are spec files, kernels/<family>/<name>.py; their source and PTX go into <family>/generated.
    """
    from prism_bench.extensions.fusion.keeping import declarations, keep_source, left_over

    folder = options.catalogue_folder(catalogue)
    declared = declarations(folder, options.patterns(programs, filter))
    kept = [keep_source(declaration, write=not check) for declaration in declared]
    done = {declaration.name for declaration in declared} - {
        file.program for file in kept if check and not file.is_same
    }
    without = (
        _keep_ptx([declaration for declaration in declared if declaration.name in done], folder, check, kept)
        if ptx
        else "not asked for"
    )
    leftover = left_over(folder)
    _print(kept, leftover, without, json)
    raise SystemExit(1 if leftover or (check and not all(file.is_same for file in kept)) else 0)


def _keep_ptx(declared: "list[Declaration]", folder: Path, check: bool, kept: "list[GeneratedFile]") -> str | None:
    """Add the states of the PTX files to `kept`; return the reason where there is no compiler."""
    from prism_bench.errors import BackendUnavailable
    from prism_bench.extensions.fusion.keeping import keep_ptx

    opened = options.open_catalogue(folder)
    with options.err().status("compiling") as status:
        for declaration in declared:
            status.update(declaration.name)
            try:
                kept += keep_ptx(declaration, opened, write=not check)
            except BackendUnavailable as error:
                return str(error)
    return None


def _print(kept: "list[GeneratedFile]", leftover: list[Path], without: str | None, json: bool) -> None:
    if json:
        files = [{"program": file.program, "path": str(file.path), "state": file.state} for file in kept]
        options.print_json({"files": files, "left_over": [str(path) for path in leftover], "no_ptx": without})
        return
    console = options.out()
    for file in kept:
        console.print(
            f"{file.state:8} {file.path}", style="dim" if file.is_same else "yellow", highlight=False, soft_wrap=True
        )
    for path in leftover:
        console.print(
            f"leftover {path}: no program declares it; remove it", style="red", highlight=False, soft_wrap=True
        )
    if without:
        console.print(f"no PTX: {without}", style="dim", highlight=False, soft_wrap=True)
