"""`prism-bench bisect`: which commit made a case slower."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench import interrupts, options
from prism_bench.errors import PrismBenchError, UsageError
from prism_bench.units import count_text

if TYPE_CHECKING:
    from prism_bench.backends import Backend
    from prism_bench.catalogue import Catalogue
    from prism_bench.studies.bisecting import Bisection, Measure
    from prism_bench.studies.history_nodes import HistoryNode

NAME = "bisect"
_DECIDED = "decided"


def command(
    good: Annotated[str, typer.Argument(help="Name the commit at which the case was fast.")],
    bad: Annotated[str, typer.Argument(help="Name the commit at which it is slow.")] = "HEAD",
    case: Annotated[str, typer.Option(help="Choose the case, such as softmax[rows=32,cols=1000].")] = "",
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: Annotated[int, typer.Option(min=1, help="Measure each side in this many processes at a time.")] = 2,
    most: Annotated[int, typer.Option("--most-measurements", min=1, help="End after this many measurements.")] = 120,
    time_limit: options.TimeLimitOption = None,
    state: Annotated[Path | None, typer.Option(help="Keep the search in this file, and go on where it ended.")] = None,
    json: options.JsonOption = False,
) -> None:
    """Find the commit that changed the time of a case.

    Commits of the same machine code are one step and are not measured. Ends with 1 where a commit made it slower, with
    2 where the search ended undecided.
    """
    from prism_bench.report.terminal.bisection import bisection_json, bisection_view
    from prism_bench.run.worktree import commits_between, repository_of, subjects_of
    from prism_bench.studies.bisecting import SearchLimits, bisected

    chosen, found = options.choose_backend(backend, quiet=json), options.open_catalogue(catalogue)
    with _no_answer():
        repository = repository_of(found.folder.resolve())
        name = _full_name(case, found)
        nodes = _nodes(name, commits_between(good, bad, repository), found, chosen, repository)
        measure = _measuring(name, nodes, found, chosen.name, processes)
        with interrupts.held():
            ended = bisected(name, nodes, measure, SearchLimits(time_limit, most), state=state, report=_progress)
    subjects = subjects_of([commit for node in nodes for commit in node.commits], repository)
    options.show(lambda: bisection_json(ended, subjects), lambda: bisection_view(ended, subjects), json=json)
    raise SystemExit(2 if len(nodes) > 1 and ended.ended != _DECIDED else int(ended.slower))


@contextmanager
def _no_answer() -> Generator[None]:
    """Let an error end the command with 2, since 1 is the answer that a commit made the case slower."""
    try:
        yield
    except PrismBenchError as error:
        raise (UsageError(str(error)) if error.exit_code == 1 else error) from None


def _full_name(case: str, catalogue: "Catalogue") -> str:
    """Return the case's full name; a UsageError where it names no case or several."""
    if not case:
        raise UsageError("bisect needs --case: the full name of one case; 'prism-bench list' prints them")
    names = [one.name for one in catalogue.cases([case]) if not one.spec.ceiling or one.name == case]
    if case in names:
        return case
    if len(names) != 1:
        few = ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")
        raise UsageError(f"--case {case}: choose one of {few}")
    return names[0]


def _nodes(
    name: str, commits: list[str], catalogue: "Catalogue", backend: "Backend", repository: Path
) -> "list[HistoryNode]":
    """Return the history folded by the code of the case, as the backend's device would run it."""
    from prism_bench.run.worktree import checked_out
    from prism_bench.studies.case_code import CaseCode, CodeReader, identity_on
    from prism_bench.studies.history_nodes import code_at, folded

    path = catalogue.folder.resolve().relative_to(repository)

    def code_of(commit: str) -> CaseCode | None:
        with checked_out(commit, repository) as tree:
            return code_at(tree / path, name, CodeReader(backend.device, identity_on(backend.name)))

    nodes = folded(commits, code_of)
    options.remark(f"{count_text(len(commits), 'commit')}, {len(nodes)} of different code")
    return nodes


def _measuring(
    name: str, nodes: "list[HistoryNode]", catalogue: "Catalogue", backend: str, processes: int
) -> "Measure":
    """Return what measures a node against node 0: log medians of the processes of both sides, measured in turn."""
    from prism_bench.options import pairs
    from prism_bench.run.interleave import MAIN_METRICS
    from prism_bench.run.sides import Choice, opened
    from prism_bench.studies.history_nodes import logs_of
    from prism_bench.studies.pairs import PairEffort

    def measure(node: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        words = nodes[0].measured, nodes[node].measured
        with opened(words, Choice(catalogue, (name,), options.chosen_labels(None))) as sides:
            records, _ = pairs.measured(sides.builds, PairEffort(backend, processes, metrics=MAIN_METRICS))
        first, second = (logs_of(record, name) for record in records)
        return first, second

    return measure


def _progress(search: "Bisection") -> None:
    place = int(search.posterior.at.argmax())
    share = search.posterior.at[place]
    options.remark(
        f"{len(search.measured)} measured; most likely {search.nodes[place].measured[:10]} ({share:.0%}), "
        f"no change {search.posterior.none:.0%}"
    )
