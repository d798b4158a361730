"""`prism-bench overlap`: the benefit of copies and kernels at the same time."""

from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.cli.options import CASE_SECONDS, TimeoutOption, limited

CHUNK = {True: "vector_add[n=4194304]", False: "vector_add[n=100000]"}  # on a GPU, elsewhere
BESIDE = ("active_inference_chain:full[length=100,m=100,n=900]", "transfer_entropy_chain:full[n=200]")


_CasesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CASES]...", help="Run these cases next to each other; default: two chains."),
]
_ChunkOption = Annotated[str | None, typer.Option(help="Use this case for each chunk, such as vector_add[n=4194304].")]
_ChunksOption = Annotated[
    int | None, typer.Option(min=1, help="Copy so many chunks; default: 16 on a GPU, 4 elsewhere.")
]
_RoundsOption = Annotated[
    int | None, typer.Option(min=1, help="Evaluate each so often; default: 50 on a GPU, 2 elsewhere.")
]


def command(
    cases: _CasesArgument = None,
    filter: options.FilterOption = None,
    chunk: _ChunkOption = None,
    chunks: _ChunksOption = None,
    lanes: Annotated[int, typer.Option(min=1, help="Share the chunks among so many streams.")] = 3,
    rounds: _RoundsOption = None,
    timeout: TimeoutOption = CASE_SECONDS,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Measure copies and kernels at the same time.

    Copy, kernel, copy in chunks on several streams against one; two chains side by side.

    Every form's results are compared with those of the plain one. Times are a GPU's; elsewhere the ledger has none.
    """
    from prism_bench.extensions.fusion.overlap import Chunks, SideBySide, account
    from prism_bench.extensions.fusion.report.terminal import overlap_json, overlap_view

    opened = options.open_catalogue(catalogue)
    target = options.choose_backend(backend, quiet=json)
    on_gpu = target.name == "cuda"
    chunked = opened.anywhere(chunk or CHUNK[on_gpu])
    others = [opened.anywhere(name) for name in options.patterns(cases, filter) or BESIDE]
    ledgers = []
    with options.err().status("copies and kernels"):
        with limited(chunked.name, timeout), Chunks(target, chunked, chunks or (16 if on_gpu else 4), lanes) as work:
            ledgers.append(account(work, timed=on_gpu))
        names = ", ".join(case.name for case in others)
        with limited(names, timeout), SideBySide(target, others, rounds or (50 if on_gpu else 2)) as work:
            ledgers.append(account(work, timed=on_gpu))
    if json:
        options.print_json([overlap_json(ledger) for ledger in ledgers])
    else:
        options.out().print(*map(overlap_view, ledgers), sep="\n")
