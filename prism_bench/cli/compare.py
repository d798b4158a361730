"""`prism-bench compare`: is B slower than A, and can that be told at all?"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench import interrupts, options
from prism_bench.errors import UsageError, unknown
from prism_bench.options import pairs
from prism_bench.options.tuned import TunedOption

if TYPE_CHECKING:
    from prism_bench.analysis.comparison import RecordComparison
    from prism_bench.analysis.verdict import VerdictRules
    from prism_bench.run_record import CaseResult, RunRecord

NAME = "compare"
_OPERAND = "a run record; a folder (catalogue or checkout), a commit, or a kernel or kernel:variant, to be measured"
_LeastOption = Annotated[
    float | None, typer.Option(min=0, help="call and exclude changes from this share on (0.01 and 0.05 if none)")
]


def command(
    a: Annotated[str, typer.Argument(help=f"the old side: {_OPERAND}")],
    b: Annotated[str, typer.Argument(help="the new side")],
    metric: Annotated[
        str | None, typer.Option(help="cold_time, hot_time ...; cold (on a CPU wall) time if none")
    ] = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: pairs.StartOption = None,
    most: pairs.MostOption = None,
    env_a: Annotated[list[str] | None, typer.Option(help="NAME=VALUE in the environment of A; may be repeated")] = None,
    env_b: Annotated[list[str] | None, typer.Option(help="NAME=VALUE in the environment of B; may be repeated")] = None,
    least: _LeastOption = None,
    limit_seconds: pairs.LimitOption = None,
    keep: pairs.KeepOption = None,
    tuned: TunedOption = False,
    noise: pairs.NoiseOption = pairs.DEFAULT_NOISE,
    all: Annotated[bool, typer.Option("--all", help="show the cases that are the same, too")] = False,
    json: options.JsonOption = False,
) -> None:
    """Compare B with A: two records, or two builds in one run.

    Builds are measured in turn, undecided cases in more processes. Ends with 1 where B is slower.
    """
    _require_metric(metric)
    environments = _environment(env_a, "--env-a"), _environment(env_b, "--env-b")
    rules = _rules(least, control=environments[0] == environments[1])
    if _are_records(a, b):
        _end(_of_records((a, b), metric, noise, rules), everything=all, json=json)
    name = options.choose_backend(backend, quiet=json).name
    choice = _choice(catalogue, filter, label or pairs.usual_labels(name), environments)
    looks = _looks(processes, most)
    effort = pairs.Effort(name, looks[0], limit_seconds, keep, tuned)
    judge = _Judge(noise, replace(rules, looks=len(looks)), metric, _short((a, b)))
    with interrupts.held():
        _end(*_of_builds((a, b), choice, effort, judge, looks=looks), everything=all, json=json)


def _end(found, save=None, *, everything, json):
    """Print the comparison and end with what it comes to, or as `save` has it where nothing could be kept."""
    _tell(found, everything, json)
    raise SystemExit(save.exit_code(found.exit_code) if save else found.exit_code)


def _rules(least, *, control):
    """A change from `least` on is called, and nothing is the same that may hide one."""
    from prism_bench.analysis.verdict import VerdictRules

    return VerdictRules(control=control) if least is None else VerdictRules(least=least, most=least, control=control)


def _looks(processes, most):
    """After how many pairs of processes the cases are judged: exactly as many as are asked for, else as needed."""
    from prism_bench.analysis.sequential import MOST, START, looks_of

    start = processes or START
    most = most or (MOST if processes is None else start)
    if most < start:
        raise UsageError(f"--most {most}: at least the {start} processes that all cases are measured in")
    return looks_of(start, most)


def _tell(found, everything, json):
    """Print the comparison."""
    from prism_bench.report.terminal.comparison import comparison_json, comparison_view

    if json:
        options.print_json(comparison_json(found))
    else:
        options.out().print(comparison_view(found, everything))


def _are_records(a, b):
    """Whether both are; what was measured on another day is not held against what is measured now."""
    files = [word for word in (a, b) if Path(word).is_file()]
    if len(files) == 1:
        raise UsageError(
            f"{files[0]} is a record and the other side is not: compare two records, or measure both sides"
        )
    return bool(files)


def _require_metric(metric):
    from prism_bench.metric import ELSEWHERE, MEASURED

    if metric and metric not in {**MEASURED, **ELSEWHERE}:
        raise unknown("metric", metric, {**MEASURED, **ELSEWHERE})


def _environment(words, option):
    for word in words or ():
        if not word.partition("=")[0] or "=" not in word:
            raise UsageError(f"{option} {word}: write NAME=VALUE")
    return dict(word.split("=", 1) for word in words or ())


def _choice(folder, filters, labels, environments):
    from prism_bench.run.sides import Choice

    return Choice(options.open_catalogue(folder), filters or (), tuple(labels), environments)


def _of_records(paths, metric, noise, rules):
    from prism_bench import store
    from prism_bench.analysis.comparison import compare
    from prism_bench.analysis.noise_file import stored_noise

    a, b = (store.read(path) for path in paths)
    floors = stored_noise(b.machine["id"], noise)
    return compare(a, b, floors, rules, metric=metric, names=_short(paths))


@dataclass(frozen=True)
class _Judge:
    """What compares two records: where floors are kept, the rules, the metric, and what the sides are called."""

    noise: Path
    rules: "VerdictRules"
    metric: str | None
    names: tuple[str, str]

    def compared(self, a: "RunRecord", b: "RunRecord", key: "Callable[[CaseResult], str]") -> "RecordComparison":
        from prism_bench.analysis.comparison import compare
        from prism_bench.analysis.noise_file import stored_noise

        floors = stored_noise(b.machine["id"], self.noise)
        return compare(a, b, floors, self.rules, metric=self.metric, key=key, names=self.names)


def _of_builds(words, choice, effort, judge, *, looks):
    from prism_bench.analysis.comparison import by_name, by_workload, undecided
    from prism_bench.run.interleave import Growth
    from prism_bench.run.sides import opened

    with opened(words, choice) as sides:
        key = by_workload if sides.across == "variants" else by_name
        growth = Growth(looks, lambda records: undecided(judge.compared(*records, key), records, key))
        (a, b), save = pairs.measured(sides.builds, effort, growth)
    found = judge.compared(a, b, key)
    return replace(found, notes=(*sides.notes, *found.notes), complete=a.complete and b.complete), save


def _short(words):
    """What the two sides are called in a table: a path's last part; A and B where that does not tell them apart."""
    names = [Path(word).name.removesuffix(".gz").removesuffix(".json") or word for word in words]
    return ("A", "B") if names[0] == names[1] else tuple(names)
