"""`prism-bench overlap`: what copies and kernels at the same time bring."""

from typing import Annotated

import typer

from prism_bench import options
from prism_bench.options.limits import CASE_SECONDS, TimeoutOption, limited

NAME = "overlap"
CHUNK = {True: "vector_add[n=4194304]", False: "vector_add[n=100000]"}  # on a GPU, elsewhere
BESIDE = ("active_inference_chain:full[length=100,m=100,n=900]", "transfer_entropy_chain:full[n=200]")


def command(
    chunk: Annotated[
        str | None, typer.Option(help="the case that each chunk is, such as vector_add[n=4194304]")
    ] = None,
    chunks: Annotated[int | None, typer.Option(min=1, help="how many; 16 on a GPU, 4 elsewhere")] = None,
    lanes: Annotated[int, typer.Option(min=1, help="streams that the chunks are shared among")] = 3,
    beside: Annotated[
        list[str] | None, typer.Option(help="a case to run next to others; may be repeated; two chains without it")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="evaluations of each; 50 on a GPU, 2 elsewhere")] = None,
    timeout: TimeoutOption = CASE_SECONDS,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Account for copies and kernels at the same time.

    Copy, kernel, copy in chunks on several streams against one; two chains side by side.

    Every form's results are compared with those of the plain one. Times are a GPU's; elsewhere the ledger has none.
    """
    from prism_bench.extensions.fusion.overlap import Chunks, SideBySide, account
    from prism_bench.extensions.fusion.report.overlap import overlap_json, overlap_view

    opened = options.open_catalogue(catalogue)
    leg = options.choose_backend(backend, quiet=json)
    on_gpu = leg.name == "cuda"
    one = opened.anywhere(chunk or CHUNK[on_gpu])
    others = [opened.anywhere(name) for name in beside or BESIDE]
    found = []
    with options.err().status("copies and kernels"):
        with limited(one.name, timeout), Chunks(leg, one, chunks or (16 if on_gpu else 4), lanes) as work:
            found.append(account(work, timed=on_gpu))
        names = ", ".join(case.name for case in others)
        with limited(names, timeout), SideBySide(leg, others, rounds or (50 if on_gpu else 2)) as work:
            found.append(account(work, timed=on_gpu))
    if json:
        options.print_json([overlap_json(one) for one in found])
    else:
        options.out().print(*map(overlap_view, found), sep="\n")
