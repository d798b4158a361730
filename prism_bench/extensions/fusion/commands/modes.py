"""Modes of commands of the core: `prism-bench profile --overlap` and `prism-bench tune --precision`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.cli import options
from prism_bench.cli.options import limited
from prism_bench.errors import UsageError

if TYPE_CHECKING:
    from prism_bench.extensions.fusion.overlap import OverlapLedger
    from prism_bench.extensions.fusion.selection import PrecisionChoice

# Copies and kernels at the same time: on a GPU, and elsewhere.
_CHUNK = {True: "vector_add[n=4194304]", False: "vector_add[n=100000]"}
_BESIDE = ("active_inference_chain:full[length=100,m=100,n=900]", "transfer_entropy_chain:full[n=200]")
_CHUNKS, _ROUNDS, _LANES = {True: 16, False: 4}, {True: 50, False: 2}, 3


def overlap(names: Sequence[str], backend: str | None, catalogue: Path | None, timeout: float, *, json: bool) -> None:
    """Print what it brings to copy while kernels run, in chunks of a case, and to run several cases side by side.

    One case is run in chunks, several side by side; without names both, of examples. Every form's results are compared
    with those of the plain one. Times are a GPU's; elsewhere there are none.
    """
    from prism_bench.extensions.fusion.overlap import Chunks, SideBySide, account
    from prism_bench.extensions.fusion.report.terminal import overlap_json, overlap_view

    opened = options.open_catalogue(catalogue)
    target = options.choose_backend(backend, quiet=json)
    on_gpu = target.name == "cuda"
    chunked = [opened.anywhere(name) for name in names or (_CHUNK[on_gpu],)] if len(names) < 2 else []
    others = [opened.anywhere(name) for name in names or _BESIDE] if len(names) != 1 else []
    ledgers: list[OverlapLedger] = []
    with options.err().status("copies and kernels"):
        for case in chunked:
            with limited(case.name, timeout), Chunks(target, case, _CHUNKS[on_gpu], _LANES) as work:
                ledgers.append(account(work, timed=on_gpu))
        if others:
            together = ", ".join(case.name for case in others)
            with limited(together, timeout), SideBySide(target, others, _ROUNDS[on_gpu]) as work:
                ledgers.append(account(work, timed=on_gpu))
    if json:
        options.print_json([overlap_json(ledger) for ledger in ledgers])
    else:
        options.out().print(*map(overlap_view, ledgers), sep="\n")


def precision(
    names: Sequence[str],
    sample: Path | None,
    tolerance: float | None,
    label: str,
    backend: str | None,
    catalogue: Path | None,
    timeout: float,
    *,
    json: bool,
) -> int:
    """Print the cheapest precision of each program whose error is within the tolerance; 1 where none is.

    The error is that of the kernel on rounded operands against its float64 reference on unrounded ones: of the arrays
    in `sample`, a NumPy .npz file, or of seeded random ones. Costs are times on a GPU, elsewhere bytes that must move.
    Without names these are the programs that declare `within`.
    """
    from prism_bench.extensions.fusion.keeping import declarations
    from prism_bench.extensions.fusion.report.terminal import precision_json, precision_table
    from prism_bench.extensions.fusion.selection import Question, read_sample, select

    opened = options.open_catalogue(catalogue)
    declared = declarations(opened.folder, names)
    wanted = declared if names else [declaration for declaration in declared if declaration.program.within is not None]
    if not wanted:
        raise UsageError("no program declares 'within'; name one, with --tolerance")
    target = options.choose_backend(backend, quiet=json)
    question = Question(label, tolerance, read_sample(sample) if sample else None)
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
    return 0 if all(choice.chosen for choice in choices) else 1
