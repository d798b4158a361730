"""`prism-bench inventory`: what the catalogue defines, launches, verifies and times, next to the documents' claims."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options


def command(
    cases: options.CasesArgument = None,
    filter: options.FilterOption = None,
    record: Annotated[Path | None, typer.Option(help="Read this run record; default: the newest one.")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Audit what the catalogue uses, verifies and times.

    Definitions, launched instances, verified and timed cases, chains, unused definitions.

    Ends with 1 where a definition is unused, or a kernel of the record is not verified or not timed.
    """
    from lab.inventory.inventory import CLAIMS, chosen_items, inventory, totals
    from lab.inventory.view import claims_table, items_table
    from prism_bench.record import store

    paths = [record] if record else store.records_in(runs)[-1:]
    found = options.open_catalogue(catalogue)
    everything = inventory(found, store.read(paths[0]) if paths else None)
    counts, items = totals(everything), chosen_items(everything, options.patterns(cases, filter))
    if json:
        plain = [asdict(item) | {"unused": item.unused, "gaps": item.gaps} for item in items]
        claims = {name: {"documents": quoted, "source": source, "here": counts[name]}
                  for name, (quoted, source) in CLAIMS.items()}  # fmt: skip
        options.print_json({"record": str(paths[0]) if paths else None, "claims": claims, "kernels": plain})
    else:
        options.out().print(items_table(items, paths[0] if paths else None), claims_table(counts))
    raise SystemExit(1 if found.problems or any(item.gaps for item in items) else 0)
