"""`prism-bench comment`: a comparison as a comment on a pull request, and a digest of the last days."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism_bench.cli import options
from prism_bench.errors import PrismBenchError, ResultsError, UsageError
from prism_bench.io import project
from prism_bench.units import parsed_since

if TYPE_CHECKING:
    from prism_bench.catalogue import Catalogue
    from prism_bench.record.store.history import HistoryProblem
    from prism_bench.report.site.context import SiteContext


_PAGE = "PRISM_BENCH_PAGE"  # an address; a job that posts a comment may have no checkout with the configuration


@dataclass(frozen=True)
class _PullRequestKeys:
    """Keys of `[tool.prism-bench.pull-request]`: the address of the page that comments link to."""

    page: str | None = None


def command(
    comparison: Annotated[
        Path | None, typer.Argument(help="Read this file, which 'prism-bench compare --json' printed.")
    ] = None,
    post: Annotated[
        bool, typer.Option("--post", help="Write or update the comment on the pull request of this job.")
    ] = False,
    pull_request: Annotated[
        int | None,
        typer.Option("--pull-request", min=1, help="Write to this number; default: that of the job's event."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Print the changes since a day such as 2026-11-14, or since 7d or 2w ago."),
    ] = None,
    output: options.OutputOption = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    catalogue: options.CatalogueOption = None,
    json: options.JsonOption = False,
) -> None:
    """Print a comparison, or the last days' changes, in Markdown.

    A comparison becomes a comment for a pull request, which is posted where asked. The text depends on the file alone.
    It links to the page of PRISM_BENCH_PAGE, else to the configured one. GitHub needs GITHUB_TOKEN, GitLab
    GITLAB_TOKEN. Ends with 2 where the comment could not be posted; it is printed all
    the same.

    With --since, a digest for mail or a channel: times that changed and why, what cannot be trusted, what is
    unmeasured, and budgets that end soon. --output writes it as Markdown (.md), which is not printed then, or as HTML
    for mail (.html). Ends with 2 where the newest record of a machine cannot be used.
    """
    forms = options.written_forms(output, (".md", ".html"))
    of_digest = {"--since": since, "--output": forms, "--catalogue": catalogue}
    of_comment = {"--post": post, "--pull-request": pull_request}
    options.refuse(
        of_digest if comparison else of_comment,
        f"leave it out {'with' if comparison else 'without'} a comparison",
    )
    if comparison:
        _comment(comparison, post, pull_request, json=json)
    elif since:
        _digest(since, forms.get(".md"), forms.get(".html"), runs, catalogue, json=json)
    else:
        raise UsageError("name a file that 'prism-bench compare --json' printed, or give --since, such as --since 7d")


def _comment(comparison: Path, post: bool, pull_request: int | None, *, json: bool) -> None:
    """Print the comment of a comparison, and write it to the pull request with `post`."""
    from prism_bench.extensions.ci.comment import comment, read_comparison
    from prism_bench.extensions.ci.forges import posted

    configuration = project.current()
    configured = configuration.section("pull-request", _PullRequestKeys).page if configuration else None
    text = comment(read_comparison(comparison), os.environ.get(_PAGE) or configured)
    if not json:
        typer.echo(text, nl=False)
    if not post:
        _end(text, None, json=json)
        return
    try:
        url = posted(text, pull_request)
    except PrismBenchError:
        _end(text, None, json=json)
        raise
    _end(text, url, json=json)


def _end(text: str, url: str | None, *, json: bool) -> None:
    """Print the JSON form, or the address of the comment."""
    if json:
        options.print_json({"text": text, "url": url})
    elif url:
        options.remark(f"comment: {url}")


def _digest(
    since: str, markdown: Path | None, html: Path | None, runs: Path, catalogue: Path | None, *, json: bool
) -> None:
    """Print or write the changes since a day; raise a ResultsError where a newest record cannot be used."""
    from prism_bench.extensions.ci import digest as forms

    today = datetime.now(UTC).date()
    day = parsed_since(since, today)
    if day is None:
        raise UsageError(f"--since {since}: write a day such as {today}, 7d or 2w")
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
