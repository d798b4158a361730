"""`prism-bench compare`: whether B is slower than A, as far as the noise floor allows to tell apart."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from prism_bench.cli import measuring, options
from prism_bench.cli.measuring import FleetOption, TunedOption, WorkersOption, not_run, status
from prism_bench.errors import UsageError, unknown
from prism_bench.io import files
from prism_bench.io.files import Saver

if TYPE_CHECKING:
    from prism_bench.analysis.compare.comparison import RecordComparison
    from prism_bench.analysis.compare.selection import Selection
    from prism_bench.analysis.compare.verdict import VerdictRules
    from prism_bench.backends import Backend
    from prism_bench.record.run_record import CaseResult, RunRecord
    from prism_bench.run.builds import Build, Choice, Sides
    from prism_bench.workflows.pairs import PairEffort, PairJudge, Records

NAME = "compare"
_OF_ITSELF = 5  # processes of each side: a noise floor is the difference between processes
_OPERAND = "a run record; a folder (catalogue or checkout), a commit, or a kernel or kernel:variant, to be measured"
_OldArgument = Annotated[
    str | None,
    typer.Argument(help=f"Name the old side: {_OPERAND}; default: where this branch left the default branch."),
]
_NewArgument = Annotated[str | None, typer.Argument(help="Name the new side; default: the working tree.")]
_MetricOption = Annotated[str | None, typer.Option(help=options.METRIC)]
_ItselfOption = Annotated[
    bool, typer.Option("--itself", help="Measure the cases against themselves and keep their noise floors.")
]
_EnvironmentOption = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="SIDE:NAME=VALUE", help="Set a variable for side A or B; may be repeated."),
]


def command(
    a: _OldArgument = None,
    b: _NewArgument = None,
    cases: options.CasesArgument = None,
    metric: _MetricOption = None,
    filter: options.FilterOption = None,
    label: options.LabelOption = None,
    backend: options.BackendOption = None,
    catalogue: options.CatalogueOption = None,
    processes: measuring.RangeOption = None,
    env: _EnvironmentOption = None,
    least: measuring.LeastOption = None,
    time_limit: options.TimeLimitOption = None,
    records: options.RecordsOption = None,
    tuned: TunedOption = None,
    noise: measuring.NoiseOption = measuring.DEFAULT_NOISE,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    all: options.AllOption = False,
    itself: _ItselfOption = False,
    fleet: FleetOption = None,
    workers: WorkersOption = None,
    json: options.JsonOption = False,
) -> None:
    """Compare B with A: two records, or two builds in one run.

    Alone, the working tree and the commit where its branch began are compared. Ends with 1 where B is slower. Of two
    builds only the cases whose code changed are measured, and a sample of the others; with --all all of them.

    With --itself all arguments are CASES: the build is compared with itself, which shows how far times differ here
    without any change. compare, trend and check use these noise floors.
    """
    if itself:
        compared = {"--metric": metric, "--env": env, "--least": least, "--fleet": fleet}
        options.refuse(compared | {"--workers": workers}, "leave it out with --itself")
        cases = [word for word in (a, b, *(cases or ())) if word]
        chosen = options.patterns(cases, filter), label
        _end_of_itself(
            backend, catalogue, chosen, noise, (int(processes or _OF_ITSELF), time_limit, records, bool(tuned)), json
        )
    environments = _environments(env or ())
    judge = _Judge(noise, _rules(least, environments), metric, runs=runs, named=(catalogue, label or ()))
    patterns, looks = options.patterns(cases, filter), _looks(processes)
    if a and _are_records(a, b or ""):
        if records:
            raise UsageError(f"--records {records}: leave it out with two records, between which nothing is measured")
        _end(judge, _of_records((a, b or ""), patterns, judge), whole=all, json=json)
    from prism_bench.run.builds import Choice
    from prism_bench.workflows.pairs import PairEffort

    kernels = options.open_catalogue(catalogue)
    with files.held(), measuring.opened_place(fleet, workers, backend, kernels.folder, quiet=json) as place:
        choice = Choice(kernels, patterns, measuring.pair_labels(label, place.name), environments)
        effort = PairEffort(place.name, looks[0], time_limit, records, bool(tuned))
        option = "--all" if all else "--tuned" if tuned else None
        comparison, save = _of_builds((a, b), choice, effort, judge, looks=looks, place=place, option=option)
        _end(judge, comparison, save, whole=all, json=json)


def _end_of_itself(
    backend: str | None,
    catalogue: Path | None,
    chosen: tuple[tuple[str, ...], Sequence[str] | None],
    noise: Path,
    effort: tuple[int, float | None, Path | None, bool],
    json: bool,
) -> NoReturn:
    """Measure the chosen cases against themselves, keep and print their noise floors, and end with 2 without any."""
    from prism_bench.analysis.compare.noise import Noise, keep_noise, noise_of
    from prism_bench.report.plain import noise_json
    from prism_bench.report.terminal.comparison import noise_view
    from prism_bench.run.builds import Choice, of_itself
    from prism_bench.workflows.pairs import PairEffort

    name, (patterns, labels) = options.choose_backend(backend, quiet=json).name, chosen
    sides = of_itself(Choice(options.open_catalogue(catalogue), patterns, measuring.pair_labels(labels, name)))
    with files.held():
        measured, save = measuring.measured(sides.builds, PairEffort(name, *effort))
        floors = noise_of(*measured)
        keep_floors: Saver[Noise, Path] = Saver(lambda measured_floors: keep_noise(measured_floors, noise))
        path = keep_floors.finish(floors)
        if json:
            options.print_json({"path": path and str(path), **noise_json(floors)})
        else:
            options.out().print(noise_view(floors))
            options.line(f"noise floors: {path or 'not kept'}")
        whole = floors.floors and all(record.complete for record in measured)
        raise SystemExit(save.exit_code(keep_floors.exit_code(0 if whole else 2)))


def _metrics(metric: str | None, records: Path | None) -> tuple[str, ...]:
    """Return what is measured: the metric that is judged, and every time of the device where records are kept."""
    from prism_bench.run.builds import DEVICE_METRICS, MAIN_METRICS

    if metric == "energy":
        return (*DEVICE_METRICS, metric) if records else ("hot_time", metric)  # it replays the same graph
    if records or metric not in (None, *DEVICE_METRICS):
        return DEVICE_METRICS
    return (metric,) if metric else MAIN_METRICS


def _end(
    judge: "_Judge",
    comparison: "RecordComparison",
    save: "Saver[Records, object] | None" = None,
    *,
    whole: bool,
    json: bool,
) -> NoReturn:
    """Print the comparison and end with its exit code, or with that of `save` where nothing could be kept."""
    from prism_bench.report.plain import comparison_json
    from prism_bench.report.terminal.comparison import comparison_view
    from prism_bench.run.builds import in_repository

    (folder, labels), metric = judge.named, judge.metric
    asked = in_repository(folder) if folder else None, labels, metric
    options.show(lambda: comparison_json(comparison, asked), lambda: comparison_view(comparison, whole), json=json)
    raise SystemExit(save.exit_code(comparison.exit_code) if save else comparison.exit_code)


def _rules(least: float | None, environments: "tuple[dict[str, str], dict[str, str]]") -> "VerdictRules":
    """Return rules by which a change from `least` on is reported, and cases are the same only if none is hidden."""
    from prism_bench.analysis.compare.verdict import VerdictRules

    control = environments[0] == environments[1]
    return VerdictRules(control=control) if least is None else VerdictRules(least=least, most=least, control=control)


def _looks(processes: int | None) -> tuple[int, ...]:
    """Return after how many pairs of processes the cases are judged: in the range given, else as needed."""
    from prism_bench.analysis.compare import MOST, START
    from prism_bench.analysis.compare.verdict import looks_of

    if isinstance(processes, measuring.ProcessCount):
        return looks_of(int(processes), processes.most)
    return looks_of(START, MOST)


def _are_records(a: str, b: str) -> bool:
    """Return whether both are; times of another day are not compared with times measured now."""
    records = [word for word in (a, b) if Path(word).is_file()]
    if len(records) == 1:
        raise UsageError(
            f"{records[0]} is a record and the other side is not: compare two records, or measure both sides"
        )
    return bool(records)


def _require_metric(metric: str | None) -> None:
    from prism_bench.spec.metric import ELSEWHERE, MEASURED

    if metric and metric not in {**MEASURED, **ELSEWHERE}:
        raise unknown("metric", metric, {**MEASURED, **ELSEWHERE})


def _environments(variables: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables of side A and of side B."""
    sides: dict[str, dict[str, str]] = {"A": {}, "B": {}}
    for variable in variables:
        side, _, setting = variable.partition(":")
        name, equals, value = setting.partition("=")
        if side not in sides or not name or not equals:
            raise UsageError(f"--env {variable}: write A:NAME=VALUE or B:NAME=VALUE")
        sides[side][name] = value
    return sides["A"], sides["B"]


@dataclass(frozen=True)
class _Judge:
    """What compares two records: where noise floors are kept, the rules, the metric, and the names of the sides.

    `named` are the catalogue and the labels that the command line has, if any. The records below `runs` show what two
    boards differ by, where the sides come from two.
    """

    noise: Path
    rules: "VerdictRules"
    metric: str | None
    names: tuple[str, str] = ("A", "B")
    runs: Path = options.DEFAULT_RUNS
    named: tuple[Path | None, Sequence[str]] = None, ()

    def __post_init__(self) -> None:
        _require_metric(self.metric)

    def on_fleet(self, sides: "Sides", changed: Sequence[str]) -> "PairJudge":
        """Return what decides on the boards of a fleet whether a case needs more processes."""
        from prism_bench.workflows.pairs import PairJudge

        return PairJudge(str(self.noise.resolve()), self.rules, sides.across, self.metric, tuple(changed))

    def compared(
        self,
        a: "RunRecord",
        b: "RunRecord",
        key: "Callable[[CaseResult], str] | None" = None,
        changed: Sequence[str] = (),
    ) -> "RecordComparison":
        """Return the comparison; `key` names what is paired, the case's name without one."""
        from prism_bench.analysis.boards import KnownBoards
        from prism_bench.analysis.compare.comparison import by_name, compare
        from prism_bench.analysis.compare.noise import stored_noise
        from prism_bench.record.store import read_history

        floors = stored_noise(b.machine["id"], self.noise)
        boards = KnownBoards(lambda: read_history(self.runs), str(b.machine["id"]), b.backend)
        return compare(
            a,
            b,
            floors,
            self.rules,
            metric=self.metric,
            key=key or by_name,
            names=self.names,
            changed=changed,
            boards=boards,
        )


def _of_records(paths: tuple[str, str], patterns: Sequence[str], judge: _Judge) -> "RecordComparison":
    from prism_bench.analysis.summary import with_cases
    from prism_bench.record import store

    with options.records_of(*map(Path, paths)):
        a, b = (store.read(path) for path in paths)
    chosen = {case.name for record in (a, b) for case in with_cases(record, patterns).cases}
    comparison = replace(judge, names=_short(paths)).compared(a, b)
    return replace(comparison, cases=tuple(row for row in comparison.cases if row.case in chosen))


def _of_builds(
    operands: tuple[str | None, str | None],
    choice: "Choice",
    effort: "PairEffort",
    judge: _Judge,
    *,
    looks: tuple[int, ...],
    place: measuring.PairPlace,
    option: str | None,
) -> "tuple[RecordComparison, Saver[Records, object] | None]":
    """Return the comparison of two builds, and what saved the records of those cases that were measured.

    `option` is the option that asks for all cases, if any.
    """
    from prism_bench.analysis.compare.comparison import unmeasured
    from prism_bench.run.builds import opened, words_of
    from prism_bench.workflows.pairs import restricted, split_by_backend

    names = words_of(*operands, choice.catalogue)
    place.require(effort)
    if judge.metric == "energy" and not place.fleet:
        measuring.require_energy(place.backend, "--metric energy")
    judge = replace(judge, names=_short(names), rules=replace(judge.rules, looks=len(looks)))
    with opened(names, choice) as sides:
        selection = _selection(place, sides, option)
        if selection:
            selection, idle = split_by_backend(selection)
            if idle:
                reason = not_run(names[0], idle)
                if not selection.changed and not any(case.problem for case in selection.cases):
                    raise UsageError(f"nothing is measured: {reason}")
                sides = replace(sides, notes=(*sides.notes, reason))
            sides = replace(sides, builds=restricted(sides.builds, selection))
            if not sides.builds[0].cases and selection.cases:
                comparison = unmeasured(judge.names, selection, sides.notes)
                return replace(comparison, backend=effort.backend, device=str(place.backend.facts()["device"])), None
        return _measured(sides, effort, judge, looks=looks, selection=selection, place=place)


def _selection(place: measuring.PairPlace, sides: "Sides", option: str | None) -> "Selection | None":
    """Return the role of every case, all measured where an `option` asks for that; None for two kernels.

    The code of two kernels differs anyway.
    """
    from prism_bench.workflows.case_code import identity_on
    from prism_bench.workflows.pairs import other_environment, other_package, selected, with_broken

    identity = identity_on(place.name)
    if sides.across == "variants":
        if identity == "reference":
            raise UsageError(f"two kernels: {not_run(sides.builds[0].name)}")
        return None
    reason = option and f"{option} is given"
    everything = reason or other_environment(sides.builds) or other_package(sides.builds, identity)
    with files.allowed(), status("compiling what differs between the sides"):
        device, launched = place.backend.device, place.name == "cuda"
        selection = selected(sides.builds, device, identity, everything, launched=launched)
    return with_broken(selection, sides.broken)


def _measured(
    sides: "Sides",
    effort: "PairEffort",
    judge: _Judge,
    *,
    looks: tuple[int, ...],
    selection: "Selection | None",
    place: measuring.PairPlace,
) -> "tuple[RecordComparison, Saver[Records, object]]":
    from prism_bench.analysis.compare.comparison import by_name, by_workload, undecided, with_selection
    from prism_bench.run.builds import Growth, parts_of

    key = by_workload if sides.across == "variants" else by_name
    changed = selection.changed if selection else ()
    growth = Growth(looks, lambda records: undecided(judge.compared(*records, key, changed), records, key))
    spent = sum(selection.seconds.values()) if selection else 0.0
    limit = None if effort.limit is None else max(1.0, effort.limit - spent)
    trusted = selection.names("control") if selection and not selection.everything else ()
    began = time.perf_counter()
    effort = replace(effort, limit=limit, trusted=trusted, metrics=_metrics(judge.metric, effort.keep))
    (a, b), save = place.measured(sides.builds, effort, growth, judge.on_fleet(sides, changed))
    comparison = judge.compared(a, b, key, changed)
    if selection:
        seconds = {**selection.seconds, **parts_of(time.perf_counter() - began, (a, b))}
        comparison = with_selection(comparison, replace(selection, seconds=seconds), (a, b))
    return replace(comparison, notes=(*sides.notes, *comparison.notes), complete=a.complete and b.complete), save


def timed_builds(builds: "tuple[Build, Build]", backend: "Backend") -> "RecordComparison":
    """Return the comparison of two builds, all of whose cases are measured, by the usual rules."""
    from prism_bench.run.builds import Sides
    from prism_bench.workflows.pairs import PairEffort

    a, b = builds
    rules, looks = _rules(None, (dict(a.place.variables), dict(b.place.variables))), _looks(None)
    judge = _Judge(measuring.DEFAULT_NOISE, replace(rules, looks=len(looks)), None, (a.name, b.name))
    effort, place = PairEffort(backend.name, looks[0]), measuring.PairPlace(backend)
    return _measured(Sides(builds, "builds"), effort, judge, looks=looks, selection=None, place=place)[0]


def _short(names: tuple[str, str]) -> tuple[str, str]:
    """Return the names of the sides in a table: a path's last part; A and B where that is the same for both."""
    a, b = (Path(name).name.removesuffix(".gz").removesuffix(".json") or name for name in names)
    return ("A", "B") if a == b else (a, b)
