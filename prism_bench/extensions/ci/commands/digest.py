"""`prism-bench digest`: the changes since a day, for mail or a channel."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism_bench.cli import options
from prism_bench.errors import ResultsError, UsageError
from prism_bench.units import parsed_since

if TYPE_CHECKING:
    from prism_bench.catalogue import Catalogue
    from prism_bench.record.store.history import HistoryProblem
    from prism_bench.report.site.context import SiteContext


def command(
    since: Annotated[str, typer.Option(help="Begin at a day such as 2026-11-14, or so long ago: 7d, 2w.")] = "7d",
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown to this file and do not print it.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write HTML for mail to this file.")] = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Summarise the changes of the last days in Markdown.

    Times that changed and why, what cannot be trusted, what is unmeasured, and budgets that end soon.

    Ends with 2 where the newest record of a machine cannot be used.
    """
    from prism_bench.extensions.ci import digest as forms

    today = datetime.now(UTC).date()
    day = parsed_since(since, today)
    if day is None:
        raise UsageError(f"--since {since}: write a day such as {today}, or 7d or 2w for so long ago")
    contexts, unusable = _contexts(runs, options.open_catalogue(catalogue))
    contents = forms.digest(contexts, day, today)
    _write(markdown, forms.markdown, contents)
    _write(html, forms.html, contents)
    if json:
        options.print_json(contents)
    elif markdown is None:
        typer.echo(forms.markdown(contents), nl=False)
    if unusable:
        raise ResultsError("; ".join(problem.reason for problem in unusable))


def _contexts(runs: Path, catalogue: "Catalogue") -> "tuple[list[SiteContext], Sequence[HistoryProblem]]":
    """Return the context of each machine, and the newest files that could not be used."""
    from prism_bench.io.documents import no_collection
    from prism_bench.record import store
    from prism_bench.report.site.context import Places, contexts, newest_of_each

    places = Places(runs)
    with options.err().status("reading records"), no_collection():
        history = store.read_history(runs)
        of_machines = list(contexts(newest_of_each(history, places), history, places, catalogue))
    return of_machines, store.unusable_newest(history)


def _write(path: Path | None, form: Callable[[dict[str, Any]], str], contents: dict[str, Any]) -> None:
    from prism_bench.io.files import write_atomically

    try:
        if path:
            write_atomically(path, form(contents).encode())
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
