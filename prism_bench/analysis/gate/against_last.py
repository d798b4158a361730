"""Gate checks against the last comparable record: what became slower since then.

Every case is compared with the newest earlier record of the machine, backend and environment, in the order of their
commits, that has a time of it and shares what `comparable` requires. Runs before that one, of the same code, are put
together with it, and show what processes and runs of the case differ by. A slow decline, in steps that no two records
show, is left to the baseline and the trend.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prism_bench.analysis.boards.known import KnownBoards
from prism_bench.analysis.compare.comparable import device_of, other_host, value_settings
from prism_bench.analysis.compare.comparison import RecordComparison, compare
from prism_bench.analysis.compare.control import Control
from prism_bench.analysis.compare.earlier_runs import ENOUGH, EarlierRuns, earlier_runs
from prism_bench.analysis.compare.noise import Noise
from prism_bench.analysis.compare.placements import FEW
from prism_bench.analysis.compare.verdict import RULES
from prism_bench.analysis.findings import metric_words, value_text
from prism_bench.analysis.gate.against_baseline import compared_checks
from prism_bench.analysis.gate.checks import GateCheck, GatePart
from prism_bench.analysis.reading import Reading
from prism_bench.errors import ResultsError
from prism_bench.measure.limits import valid, valid_median
from prism_bench.record import store
from prism_bench.record.raw_source import is_present
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.store import History
from prism_bench.units import count_text, ratio_text, time_text

NAME = "last"
# Times of the kernel alone; copies to and from the host took 1.5 times as long on the same day, with the same code.
METRICS = ("cold_time", "hot_time", "wall_time")
MOST = 10  # earlier records that are read, where the last ones lack cases


@dataclass(frozen=True)
class Earlier:
    """Earlier `record` that compares, and its name in messages."""

    record: RunRecord
    name: str


def last_part(
    reading: Reading, history: History, runs: Path, noise: Noise | None = None,
    earlier: Sequence[Earlier] | None = None,
) -> GatePart:  # fmt: skip
    """Return the part of the gate that compares with the last comparable record below `runs`, case by case.

    `earlier` are the records that `earlier_records` read, where the caller has them.
    """
    record, factor = reading.record, reading.promises.degraded
    timed = replace(record, cases=tuple(case for case in reading.cases if _times(case)))
    left = {case.name for case in timed.cases}
    if not left:
        return GatePart(NAME, silent="no case of this record has a time to compare")
    found: list[GateCheck] = []
    boards = KnownBoards(lambda: history, str(record.machine.get("id")), record.backend)
    earlier = earlier_records(record, history, runs) if earlier is None else earlier
    for place in range(len(earlier)):
        checks = _of_left(_against(earlier[place:], timed, noise, factor, boards), left)
        found += checks
        left -= {check.case for check in checks}
        if not left:
            break
    if not found:
        return GatePart(NAME, silent="no earlier record of this machine, backend and protocol")
    gone = [
        GateCheck(name, None, "unmeasured", "note", "no earlier record that compares has a time of it")
        for name in (case.name for case in timed.cases) if name in left
    ]  # fmt: skip
    return GatePart(NAME, (*found, *gone))


def _of_left(checks: Sequence[GateCheck], left: Collection[str]) -> list[GateCheck]:
    """Return the checks of the cases that no newer record has, with those on both records; none without such a case.

    The control is that of all cases that both records share: without the others it has too few to show a machine that
    changed.
    """
    own = [check for check in checks if check.case is None or check.case in left]
    return own if any(check.case for check in own) else []


def earlier_records(record: RunRecord, history: History, runs: Path) -> list[Earlier]:
    """Return the records before this one that compare with it, the newest first, until ENOUGH have each of its cases.

    At most MOST are read.
    """
    found: list[Earlier] = []
    seen = Counter[str]()
    timed = {case.name for case in record.cases if _times(case)}
    settings = value_settings(record.protocol)
    for facts in reversed(history.before(record)):
        if len(found) >= MOST or (found and all(seen[name] >= ENOUGH for name in timed)):
            break
        if value_settings(facts.protocol) != settings or not is_present(runs / facts.file):
            continue
        try:
            older = store.read(runs / facts.file, edges=False)
        except ResultsError:
            continue  # the history reports it as left out
        if device_of(older) == device_of(record):
            found.append(Earlier(older, f"{facts.when[:10]} {(facts.commit or '')[:8]}".strip()))
            seen.update(case.name for case in older.cases if _times(case))
    return found


def _against(
    earlier: Sequence[Earlier], record: RunRecord, noise: Noise | None, factor: float, boards: KnownBoards
) -> list[GateCheck]:
    """Return what the comparison with the first of the records finds for the cases that both have.

    That is also what is slower by the factor all the same, and which cases want more processes.
    """
    names = {case.name for case in record.cases}
    known = earlier_runs([_only(one.record, names) for one in earlier])
    older, name = _only(earlier[0].record, names), earlier[0].name
    rules = replace(RULES, looks=int(record.protocol.get("looks", 1)))
    comparison = compare(
        known.newest, record, noise, rules, names=(name, "this record"), boards=boards, earlier=known.known
    )
    compared = [check for check in compared_checks(comparison) if check.answer != "unmeasured"]
    slower = {(check.case, check.metric) for check in compared if check.grave}
    metric, later = next((one.metric for one in comparison.cases if one.identical), None), _later(comparison.control)
    far = [check for case in record.cases
           for check in _degraded(case, record, older, factor, {metric: later}) if not _in(check, slower)]  # fmt: skip
    replaced = {(check.case, check.metric) for check in far}
    checks = [check for check in compared if not _in(check, replaced)] + far
    checks += _wanting(comparison, (older, record), known, noise)
    return [replace(check, against=earlier[0].record.commit) for check in checks]


def _only(record: RunRecord, names: Collection[str]) -> RunRecord:
    return replace(record, cases=tuple(case for case in record.cases if case.name in names))


def _wanting(
    comparison: RecordComparison, records: tuple[RunRecord, RunRecord], known: EarlierRuns, noise: Noise | None
) -> Iterator[GateCheck]:
    """Yield one note on the undecided cases of few processes whose spread nothing shows: what would show it."""
    floors = noise if noise and not noise.misfit(records[1]) else None
    tables = [{case.name: case for case in record.cases} for record in records]

    def is_few(case: str, metric: str) -> bool:
        sides = [found for table in tables if (found := valid(table[case], metric))]
        return min((len(side.processes) for side in sides), default=FEW) < FEW

    unknown = [
        one.case for one in comparison.cases
        if one.verdict == "inconclusive" and (one.case, one.metric) not in known.known
        and not (floors and floors.spread(one.case, one.metric)) and is_few(one.case, one.metric)
    ]  # fmt: skip
    if unknown:
        message = (
            f"{count_text(len(unknown), 'undecided case')} in fewer than {FEW} processes, without a noise floor and "
            f"without {ENOUGH} earlier runs of the same code: measure with --processes {FEW}, or run again; after "
            f"{ENOUGH} runs their own history shows what they differ by"
        )
        yield GateCheck(None, None, "undersampled", "note", message, cases=tuple(unknown))


def _later(control: Control) -> float:
    """Return the seconds by which cases of identical machine code show that every launch takes longer: the host's."""
    return max(control.fit.offset, 0.0) if control.used else 0.0


def _degraded(
    case: CaseResult, record: RunRecord, older: RunRecord, factor: float, later: Mapping[str | None, float]
) -> Iterator[GateCheck]:
    """Yield the kernel's own times that are longer by more than the factor from which a case is degraded.

    No error bar or number of processes makes such a difference a matter of chance. What every launch takes `later` by
    metric is no kernel's: it is taken off. A common factor is not, since a device that lost half its rate has one.
    """
    before = older.case(case.name)
    times = _times(before) if before else {}
    for metric, seconds in _times(case).items():
        if before and other_host(metric, (older.host_of(before), record.host_of(case)), ("both", "records")):
            continue
        ratio = (seconds - later.get(metric, 0.0)) / times[metric] if times.get(metric) else 0.0
        if ratio > factor:
            was, now = value_text(metric, times[metric]), value_text(metric, seconds)
            less = f" less {time_text(later[metric])} that every launch takes longer" if later.get(metric) else ""
            message = f"{metric_words(metric)} {now}{less}, {was} before; the rule is at most {ratio_text(factor)}"
            yield GateCheck(case.name, metric, "degraded", "bad", message, ratio)


def _times(case: CaseResult) -> dict[str, float]:
    """Return the trusted medians of the kernel's own times by metric."""
    metrics = METRICS if case.status == "ok" else ()
    return {metric: median for metric in metrics if (median := valid_median(case, metric))}


def _in(check: GateCheck, known: Collection[tuple[str | None, str | None]]) -> bool:
    return (check.case, check.metric) in known


def once(part: GatePart, others: Sequence[GatePart]) -> GatePart:
    """Return the part, in which what another part found slower already is only a remark."""
    slower = {(one.case, one.metric) for other in others for one in other.checks if one.grave and one.case}
    checks = (replace(one, gravity="note", remark=True) if one.grave and _in(one, slower) else one
              for one in part.checks)  # fmt: skip
    return replace(part, checks=tuple(checks))
