"""`prism-bench inventory`: what the catalogue defines, launches, verifies and times, beside the documents' claims."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from prism_bench import options

NAME = "inventory"


def command(
    record: Annotated[Path | None, typer.Option("--record", help="a run record; the newest one without it")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Audit the catalogue: what is used, verified and timed.

    Definitions, launched instances, verified and timed cases, chains, what is unused.

    Ends with 1 where a definition is unused, or a kernel of the record is not verified or not timed.
    """
    from prism_bench import store
    from prism_bench.extensions.inventory.inventory import CLAIMS, inventory, totals

    paths = [record] if record else store.records_in(runs)[-1:]
    found = options.open_catalogue(catalogue)
    items = inventory(found, store.read(paths[0]) if paths else None)
    counts = totals(items)
    if json:
        plain = [asdict(item) | {"unused": item.unused, "gaps": item.gaps} for item in items]
        claims = {name: {"documents": said, "source": source, "here": counts[name]}
                  for name, (said, source) in CLAIMS.items()}  # fmt: skip
        options.print_json({"record": str(paths[0]) if paths else None, "claims": claims, "kernels": plain})
    else:
        options.out().print(_items(items, paths), _claims(counts))
    raise SystemExit(1 if found.problems or any(item.gaps for item in items) else 0)


def _items(items, paths):
    table = Table(title=f"verified and timed: {paths[0] if paths else 'no record'}", title_justify="left")
    for name in ("family", "kernel", "definitions", "instances", "variants", "verified", "timed", "replaces", "gaps"):
        counted = name in ("definitions", "instances", "variants", "verified")
        table.add_column(name, justify="right" if counted else "left", overflow="fold")
    for item in items:
        verified = f"{item.verified}/{item.checks}" if item.checks else "-"
        counts = (str(len(item.definitions)), str(len(item.launched)), str(len(item.variants)), verified)
        words = (" ".join(item.timed) or "-", " ".join(item.replaces), Text("; ".join(item.gaps), style="yellow"))
        table.add_row(item.family, item.kernel, *counts, *words)
    return table


def _claims(counts):
    from prism_bench.extensions.inventory.inventory import CLAIMS

    table = Table(title="what the documents say, and what is here", title_justify="left")
    for name in ("", "documents", "here", "source"):
        table.add_column(name, justify="right" if name in ("documents", "here") else "left")
    for name, (said, source) in CLAIMS.items():
        table.add_row(name, said, str(counts[name]), source)
    return table
