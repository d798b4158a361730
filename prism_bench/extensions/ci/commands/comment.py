"""`prism-bench comment`: a comparison as a comment on a pull request."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from prism_bench.cli import options
from prism_bench.io import project


@dataclass(frozen=True)
class _PullRequestKeys:
    """Keys of `[tool.prism-bench.pull-request]`: the address of the page that comments link to."""

    page: str | None = None


def command(
    comparison: Annotated[Path, typer.Argument(help="Read this file, which 'prism-bench compare --json' printed.")],
    page: Annotated[str | None, typer.Option(help="Add a link to this address; default: the configured one.")] = None,
    post: Annotated[
        bool, typer.Option("--post", help="Write or update the comment on the pull request of this job.")
    ] = False,
    pull_request: Annotated[
        int | None,
        typer.Option("--pull-request", min=1, help="Write to this number; default: that of the job's event."),
    ] = None,
    json: options.JsonOption = False,
) -> None:
    """Print a comparison as a comment for a pull request.

    Posts it where asked. The text depends on the file alone. GitHub needs GITHUB_TOKEN, GitLab GITLAB_TOKEN. Ends with
    2 where the comment could not be posted; it is printed all the same.
    """
    from prism_bench.extensions.ci.comment import comment, read_comparison

    configuration = project.current()
    configured = configuration.section("pull-request", _PullRequestKeys).page if configuration else None
    text = comment(read_comparison(comparison), page or configured)
    if not json:
        typer.echo(text, nl=False)
    if not post:
        _end(text, None, json=json)
        return
    from prism_bench.errors import PrismBenchError
    from prism_bench.extensions.ci.forges import posted

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
