"""`prism-bench bisect`: which commit made a case slower."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import measuring, options
from prism_bench.errors import PrismBenchError, ResultsError, UsageError
from prism_bench.io import files
from prism_bench.units import count_text

if TYPE_CHECKING:
    from prism_bench.analysis.compare.estimate import Spread
    from prism_bench.backends import Backend
    from prism_bench.catalogue import Catalogue
    from prism_bench.workflows.bisecting import Bisection, HistoryNode, Measure

NAME = "bisect"
_DECIDED = "decided"
_MOST = 120  # measurements: a search that needs more has no answer; --time-limit ends one sooner
_CaseArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CASES]...", help="Choose one case, such as softmax[rows=32,cols=1000]."),
]


def command(
    good: Annotated[str, typer.Argument(help="Name the commit at which the case was fast.")],
    bad: Annotated[str, typer.Argument(help="Name the commit at which it is slow.")] = "HEAD",
    cases: _CaseArgument = None,
    filter: options.FilterOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: measuring.ProcessesOption = 2,
    time_limit: options.TimeLimitOption = None,
    state: Annotated[Path | None, typer.Option(help="Keep the search in this file, and go on where it ended.")] = None,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    json: options.JsonOption = False,
) -> None:
    """Find the commit that changed the time of a case.

    Commits of the same machine code are one step and are not measured. Ends with 1 where a commit made it slower, with
    2 where the search ended undecided.
    """
    from prism_bench.report.terminal.comparison import bisection_json, bisection_view
    from prism_bench.run.builds import commits_between, repository_of, subjects_of
    from prism_bench.workflows.bisecting import SearchLimits, bisected

    end = None if time_limit is None else time.monotonic() + time_limit
    chosen, kernels = options.choose_backend(backend, quiet=json), options.open_catalogue(catalogue)
    with _no_answer():
        repository = repository_of(kernels.folder.resolve())
        name = _full_name(options.patterns(cases, filter), kernels)
        floor = _floor(name, chosen, noise)
        nodes = _nodes(_History(name, kernels, repository), commits_between(good, bad, repository), chosen, end)
        measure = _measuring(name, nodes, kernels, chosen.name, processes)
        with files.held():
            limits = SearchLimits(None if end is None else max(0.0, end - time.monotonic()), _MOST)
            ended = bisected(name, nodes, measure, limits, state=state, report=_progress, floor=floor)
    subjects = subjects_of([commit for node in nodes for commit in node.commits], repository)
    options.show(
        lambda: bisection_json(ended, subjects, chosen.name), lambda: bisection_view(ended, subjects), json=json
    )
    raise SystemExit(2 if len(nodes) > 1 and ended.ended != _DECIDED else int(ended.slower))


@contextmanager
def _no_answer() -> Generator[None]:
    """Let an error end the command with 2, since 1 is the answer that a commit made the case slower."""
    try:
        yield
    except PrismBenchError as error:
        raise (UsageError(str(error)) if error.exit_code == 1 else error) from None


def _full_name(patterns: Sequence[str], catalogue: "Catalogue") -> str:
    """Return the full name of the case that the patterns choose; a UsageError where they choose none or several."""
    if not patterns:
        raise UsageError("bisect needs one case after both commits, or --filter; 'prism-bench list' prints their names")
    names = [case.name for case in catalogue.cases(patterns) if not case.spec.ceiling or case.name in patterns]
    if len(patterns) == 1 and patterns[0] in names:
        return patterns[0]
    if len(names) != 1:
        few = ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")
        raise UsageError(f"{' '.join(patterns)}: choose one of {few}")
    return names[0]


def _floor(name: str, backend: "Backend", noise: Path) -> "Spread | None":
    """Return the spread of a process in the machine's stored noise floor of the case; None where none is kept."""
    from prism_bench.analysis.compare.noise import stored_noise
    from prism_bench.record.identity import machine
    from prism_bench.run import PROTOCOL
    from prism_bench.run.builds import MAIN_METRICS

    known = machine(backend.facts())
    stored = stored_noise(known["id"], noise)
    if stored is None:
        return None
    if reason := stored.misfit_of(str(known.get("device") or known["id"]), backend.name, PROTOCOL):
        options.remark(reason, "yellow")
        return None
    return next((spread for metric in MAIN_METRICS if (spread := stored.spread(name, metric))), None)


@dataclass(frozen=True)
class _History:
    """The case `name` of a catalogue, in the history of its repository."""

    name: str
    catalogue: "Catalogue"
    repository: Path

    @contextmanager
    def opened(self, commit: str) -> Generator[Path]:
        """Yield the catalogue's folder as it was at the commit."""
        from prism_bench.run.builds import checked_out

        path = self.catalogue.folder.resolve().relative_to(self.repository)
        with checked_out(commit, self.repository) as tree:
            yield tree / path


def _nodes(history: _History, commits: list[str], backend: "Backend", end: float | None) -> "list[HistoryNode]":
    """Return the history folded by the code of the case, as the backend's device would run it."""
    from prism_bench.spec.metric import STAND_INS
    from prism_bench.workflows.bisecting import HistoryCode, folded
    from prism_bench.workflows.case_code import CodeReader, identity_on

    by = identity_on(backend.name)
    codes = HistoryCode(history.name, history.opened, lambda: CodeReader(backend.device, by)).at(commits, end)
    if by == "reference":
        whole = {code.identity for code in codes.values() if code}
        codes = {commit: code and code.as_reference for commit, code in codes.items()}
        if len(whole) > 1 and len({code.identity for code in codes.values() if code}) == 1:
            raise UsageError(f"nothing is measured: {measuring.not_run(commits[0][:12], [history.name])}")
        options.remark(STAND_INS[backend.name].sentence, "yellow")
    nodes = folded(commits, lambda commit: codes[commit])
    options.remark(f"{count_text(len(commits), 'commit')}, {len(nodes)} of different code")
    return nodes


def _measuring(
    name: str, nodes: "list[HistoryNode]", catalogue: "Catalogue", backend: str, processes: int
) -> "Measure":
    """Return what measures a node against node 0: log medians of the processes of both sides, measured in turn.

    It raises a ResultsError where the node has no valid time, a UsageError where node 0 has none.
    """
    from prism_bench.run.builds import MAIN_METRICS, Choice, opened
    from prism_bench.workflows.bisecting import logs_of
    from prism_bench.workflows.pairs import PairEffort

    def measure(node: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        pair = nodes[0].measured, nodes[node].measured
        with opened(pair, Choice(catalogue, (name,), options.chosen_labels(None))) as sides:
            records, _ = measuring.measured(sides.builds, PairEffort(backend, processes, metrics=MAIN_METRICS))
        try:
            first = logs_of(records[0], name)
        except ResultsError as error:
            raise UsageError(f"{pair[0][:12]} has to be measured, and every other commit against it: {error}") from None
        return first, logs_of(records[1], name)

    return measure


def _progress(search: "Bisection") -> None:
    place = int(search.posterior.at.argmax())
    share = search.posterior.at[place]
    failed = f", {len(search.failed)} could not be" if search.failed else ""
    options.remark(
        f"{len(search.measured)} measured{failed}; most likely {search.nodes[place].measured[:10]} ({share:.0%}), "
        f"no change {search.posterior.none:.0%}"
    )
