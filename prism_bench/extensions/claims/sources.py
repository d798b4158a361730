"""Where a claim comes from: a record, two records, two builds or a kernel and its peers that are measured now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from prism_bench.analysis import rivals
from prism_bench.backends import open_backend
from prism_bench.catalogue import Catalogue
from prism_bench.errors import PrismBenchError, ResultsError, UsageError, unknown
from prism_bench.extensions.claims.derived import ClaimContest, baseline_name
from prism_bench.extensions.claims.document import PEER, Claim
from prism_bench.extensions.claims.making import NoSource, SideSource, claim_of
from prism_bench.extensions.claims.measuring import ClaimEffort, measured_builds, measured_peers, with_ceilings
from prism_bench.record import store
from prism_bench.record.formats import read_foreign
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.run.sides import WORKING_TREE, Choice, Sides, opened
from prism_bench.spec.case import Case
from prism_bench.spec.workload import LABELS
from prism_bench.units import count_text

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class ClaimRequest:
    """Which claim is made.

    `case` is a name, a workload or a label; `against` the baseline where a record has several, its fastest peer by
    default. The `catalogue` has the code.
    """

    catalogue: Catalogue
    case: str | None = None
    against: str | None = None
    metric: str | None = None


def of_record(path: Path, request: ClaimRequest) -> Claim:
    """Return the claim about a case of one record, against a peer or another form of the same record."""
    return _of_one(_record(path), request)


def of_records(baseline: Path, kernel: Path, request: ClaimRequest) -> Claim:
    """Return the claim that the second record's case is faster than the first one's, as `compare` keeps them."""
    records = _record(baseline), _record(kernel)
    case = _chosen(records[1].cases, request.case)
    metric = request.metric or case.main_metric
    own = [one for one in records[0].cases if one.workload == case.workload and one.measurements]
    named = [one for one in own if request.against in (one.kernel, baseline_name(one, "kernel"))]
    same = named or [one for one in own if one.name == case.name] or own
    if len(same) != 1:
        raise UsageError(f"{baseline}: {count_text(len(same), 'case')} at the workload of {case.name}; it takes one")
    contest = ClaimContest(metric, records, (1, case.name, "kernel"), (0, same[0].name, "kernel"))
    is_one_name = baseline_name(case, "kernel") == baseline_name(same[0], "kernel")
    return _claim(contest, request, (case, same[0]), _origins((kernel, baseline), records) if is_one_name else ("", ""))


def _origins(paths: tuple[Path, Path], records: tuple[RunRecord, RunRecord]) -> tuple[str, str]:
    """Return where the kernel's and the baseline's record are from: their commits, else their files."""
    baseline, kernel = (str(record.commit or "")[:8] for record in records)
    if kernel and baseline and kernel != baseline:
        return kernel, baseline
    first, second = (Path(*path.parts[-2:]).as_posix() for path in paths)
    return first, second


def _record(path: Path) -> RunRecord:
    """Return a run record, or the one that another tool's results make; a ResultsError for anything else."""
    try:
        return store.read(path)
    except ResultsError:
        if path.suffix not in (".json", ".csv"):
            raise
    found = read_foreign(path).records
    if len(found) != 1:
        raise UsageError(f"{path}: results of {count_text(len(found), 'device')}; a claim is about one")
    return found[0]


def _claim(
    contest: ClaimContest, request: ClaimRequest, cases: tuple[CaseResult, CaseResult], where: tuple[str, str]
) -> Claim:
    """Return the claim with the code of both cases; with none where another tool measured them."""
    if any(record.imported for record in contest.records):
        unknown_code = [NoSource(place) for place in where]
        return claim_of(replace(contest, foreign=True), unknown_code, contest.records[0].backend)
    sources = [_source(one, request.catalogue) for one in cases]
    return claim_of(contest, [replace(one, where=place) for one, place in zip(sources, where, strict=True)])


def of_kernel(word: str, request: ClaimRequest, effort: ClaimEffort) -> Claim:
    """Return the claim about a kernel and its peers, measured now."""
    kernel, colon, variant = word.partition(":")
    kernel = request.catalogue.kernel(kernel).name + colon + variant
    cases = [case for case in request.catalogue.cases([kernel], LABELS) if case.kernel == kernel]
    case = _named(cases, request.case)
    if not open_backend(effort.backend).peers(case):
        raise UsageError(f"{case.name}: {effort.backend} times no peer of it; name two kernels or two records")
    record = measured_peers(request.catalogue, case, effort)
    return _of_one(record, replace(request, case=case.name))


def of_builds(words: tuple[str, str], request: ClaimRequest, effort: ClaimEffort) -> Claim:
    """Return the claim that the second of two builds, or of two forms of a kernel, is faster; measured now."""
    with opened(words, Choice(request.catalogue, labels=LABELS)) as sides:
        cases = sides.builds[1].cases
        wanted = _named(cases, request.case)
        baseline = sides.builds[0].cases[cases.index(wanted)]
        if words[0] == words[1] or (sides.across == "variants" and baseline.name == wanted.name):
            raise UsageError(f"both sides are {wanted.name}; name two forms of a kernel, two commits or two folders")
        builds = (
            replace(sides.builds[0], cases=(baseline,)), replace(sides.builds[1], cases=(wanted,)),
        )  # fmt: skip
        first, second = measured_builds(builds, effort)
        records = first, with_ceilings(second, effort)
        metric = request.metric or _chosen(second.cases, wanted.name).main_metric
        contest = ClaimContest(metric, records, (1, wanted.name, "kernel"), (0, baseline.name, "kernel"))
        a, b = _places(sides, words, records)
        return claim_of(contest, [
            SideSource(wanted, builds[1].catalogue.folder, b), SideSource(baseline, builds[0].catalogue.folder, a),
        ])  # fmt: skip


def _places(sides: Sides, words: tuple[str, str], records: tuple[RunRecord, RunRecord]) -> tuple[str, str]:
    """Return the commits or folders of two builds; nothing for forms of a kernel, whose names have them."""
    if sides.across != "builds":
        return "", ""
    # A reader has neither these folders nor what HEAD is here.
    commits = [str(record.commit or word)[:8] for record, word in zip(records, words, strict=True)]
    paths = [Path(word).resolve() for word in words]
    a, b = (
        path.name if path.is_dir() else word if word == WORKING_TREE else commit
        for path, word, commit in zip(paths, words, commits, strict=True)
    )
    if a == b:
        a, b = ("/".join(path.parts[-2:]) if path.is_dir() else name for path, name in zip(paths, (a, b), strict=True))
    return a, b


def _of_one(record: RunRecord, request: ClaimRequest) -> Claim:
    return of_result(record, _chosen(record.cases, request.case), request)


def of_result(record: RunRecord, case: CaseResult, request: ClaimRequest) -> Claim:
    """Return the claim about that case of a record, against a peer or another form of the same record."""
    metric, against = request.metric or case.main_metric, request.against
    others = [one for one in record.cases if _is_form(one, case) and baseline_name(one, "kernel") == against]
    kernel = 0, case.name, "kernel"
    if others:
        contest = ClaimContest(metric, (record,), kernel, (0, others[0].name, "kernel"))
        return _claim(contest, request, (case, others[0]), ("", ""))
    forms = [baseline_name(one, "kernel") for one in record.cases if _is_form(one, case)]
    contest = ClaimContest(metric, (record,), kernel, (0, case.name, f"{PEER}{_peer(case, against, forms)}"))
    return claim_of(contest, [_source(case, request.catalogue)] * 2)


def _is_form(one: CaseResult, case: CaseResult) -> bool:
    return one.workload == case.workload and one.name != case.name and bool(one.measurements)


def _peer(case: CaseResult, against: str | None, forms: Sequence[str]) -> str:
    """Return the peer that is the baseline: the given one, else the fastest; errors also name the other `forms`."""
    timed = [one.name for one in rivals.counted(rivals.peers(case))]
    if against is None and timed:
        return timed[0]
    if against not in timed:
        if not timed and not forms:
            raise UsageError(f"{case.name}: no peer has a time; name two kernels or two records")
        if against is None:
            raise UsageError(f"{case.name}: no peer has a time; --against names the baseline: {', '.join(forms)}")
        raise unknown("peer with a time, or other form of the kernel,", against, [*timed, *forms])
    return against


def _source(result: CaseResult, catalogue: Catalogue) -> SideSource:
    """Return the code of a record's case in the catalogue, as it was tuned."""
    try:
        case = catalogue.anywhere(result.name)
        other = {name: value for name, value in result.configuration.items() if case.configuration.get(name) != value}
        return SideSource(case.configured(other), catalogue.folder)
    except PrismBenchError as error:
        raise UsageError(f"{result.name}: the catalogue {catalogue.folder} does not have it ({error})") from None


def _chosen(results: Sequence[CaseResult], wanted: str | None) -> CaseResult:
    without = next((one for one in results if one.name == wanted and not one.measurements), None)
    if without:
        raise ResultsError(f"{without.name}: {without.status}: {without.reason or 'the record gives no reason'}")
    cases = [one for one in results if one.measurements and not one.ceiling]
    found = [one for one in cases if wanted in (None, one.name, one.workload_text, one.label)]
    return _only(found, [one.name for one in cases], wanted)


def _named(cases: Sequence[Case], wanted: str | None) -> Case:
    found = [one for one in cases if wanted in (None, one.name, str(one.workload), one.label)]
    return _only(found, [one.name for one in cases], wanted)


def _only(found: Sequence[_Found], names: Sequence[str], wanted: str | None) -> _Found:
    if len(found) == 1:
        return found[0]
    if not found and wanted is not None:
        raise unknown("case", wanted, names)
    few = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
    raise UsageError(f"--case: {count_text(len(found), 'case')} chosen and a claim is about one; name it: {few}")
