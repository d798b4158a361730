"""`prism-bench replay`: whether a claim holds on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.io import files

_TrustOption = Annotated[
    bool, typer.Option("--trust-source", help="Run code that the catalogue here does not have, without a jail.")
]
_SignedOption = Annotated[
    str | None,
    typer.Option("--signed-by", help="Refuse what has no signature minisign:PUBLIC_KEY or sigstore:IDENTITY,ISSUER."),
]


def command(
    claim: Annotated[str, typer.Argument(help="Check this claim: a file, or an address with https://.")],
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: measuring.ProcessesOption = 5,
    trust_source: _TrustOption = False,
    signed_by: _SignedOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the answer to this file, too.")] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Write its page to this HTML file, too.")] = None,
    badge: Annotated[Path | None, typer.Option("--badge", help="Write its badge to this SVG file, too.")] = None,
    json: options.JsonOption = False,
) -> None:
    """Check a claim: its hashes, outputs and ratio on this machine.

    Without the GPU that it needs, its outputs are verified on the emulator, and the answer names what stays open.
    Ends with 0 where it is reproduced, 1 where it is not or in part, 3 where that cannot be decided here.
    """
    from prism_bench.extensions.claims.checks import checked, fetched, is_address, require_signature
    from prism_bench.extensions.claims.document import canonical
    from prism_bench.extensions.claims.page import replay_json, replay_view, require_places, show_claim
    from prism_bench.extensions.claims.replaying import ClaimReplay
    from prism_bench.io.files import write_atomically

    require_places({"--output": output, "--html": page, "--badge": badge}, [claim])
    content = fetched(claim)
    document, records = checked(content, claim)
    options.remark(f"signature: {require_signature(claim, content, signed_by)}")
    with files.held(), measuring.progress_bar() as report:
        known = options.open_catalogue(catalogue)
        replay = ClaimReplay(document, records, known, backend, processes, trusted=trust_source, report=report).replay()
    if output:
        write_atomically(output, f"{canonical(replay)}\n".encode())
    show_claim(document, replay, (page, badge), claim if is_address(claim) else Path(claim).name)
    options.show(lambda: replay_json(replay), lambda: replay_view(replay), json=json)
    raise SystemExit(replay.exit_code)
