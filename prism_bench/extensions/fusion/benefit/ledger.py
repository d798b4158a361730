"""Ledger of fusion: every chain at every workload, stage by stage, compared with its separate launches."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.analysis.bounds.bottleneck import dram_bytes, value
from prism_bench.analysis.bounds.profiles import Counted
from prism_bench.analysis.summary import cache_bytes, limits_of, number
from prism_bench.catalogue import Catalogue
from prism_bench.errors import UsageError, unknown
from prism_bench.extension import installed
from prism_bench.extensions.fusion.benefit.saving import (
    CLOCKS,
    DIVIDED,
    STAGES,
    Basis,
    Figure,
    Prices,
    PublishedRow,
    Saving,
    Speedup,
    StageCost,
    Timed,
    absent,
    library,
    pass_rule,
    published_rows,
    saving,
    speedup,
    timed,
)
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Array, Chain, InOut, KernelSpec, Launch, Zero
from prism_bench.spec.workload import LABELS
from prism_bench.workflows.traffic import CaseTraffic

if TYPE_CHECKING:
    from prism_bench.extensions.persistent.records import ItemSpread, ItemTimes, LatencyRecord


# Waits of a host for an evaluation of a chain, served, replayed or launched: times of the extension `persistent`.

STAGE = "persistent"  # the served stage, and the extension that serves it; other stages are launched or replayed


@dataclass(frozen=True)
class ChainAnswer:
    """Wait of a host for a stage in a form.

    `answer` is the time from the host's request to its notice of the end, `each` the share of one of many simultaneous
    requests; `against_graph` is the fastest graph's answer over this one's, None if no graph was timed. `launches`
    are what the host issues for one evaluation.
    """

    stage: str
    form: str
    launches: int
    answer: "ItemSpread"
    each: "ItemSpread"
    error: float | None
    against_graph: float | None


def read_times(folder: Path) -> "LatencyRecord | None":
    """Return the newest times of served items in `folder`; None without such a file."""
    if all(extension.name != STAGE for extension in installed()):
        return None
    from prism_bench.extensions.persistent.records import newest, read_latencies

    chosen = newest(folder)
    return read_latencies(chosen) if chosen else None


def answers(
    stages: Mapping[str, Case], launches: Mapping[str, int], record: "LatencyRecord | None"
) -> tuple[ChainAnswer, ...]:
    """Return the chain's stages as `record` has them, the empty item first; empty without a record that served it.

    `launches` are the launches of each stage outside the queue.
    """
    if record is None or STAGE not in stages:
        return ()
    from prism_bench.extensions.persistent import PERSISTENT
    from prism_bench.extensions.persistent.records import EMPTY, GRAPH

    rows = [(stage, row) for stage, case in stages.items() for row in _rows(stage, case, record)]
    if not any(stage == STAGE for stage, _ in rows):
        return ()
    empty = record.row(EMPTY, PERSISTENT)
    best = min((row.answer.median for _, row in rows if row.form == GRAPH), default=None)
    every = ([(EMPTY, empty)] if empty else []) + rows
    issued = {PERSISTENT: 0, GRAPH: 1}
    return tuple(
        ChainAnswer(
            stage,
            row.form,
            issued.get(row.form, launches.get(stage, 0)),
            row.answer,
            row.each,
            row.error,
            best / row.answer.median if best and stage != EMPTY else None,
        )
        for stage, row in every
    )


def _rows(stage: str, case: Case, record: "LatencyRecord") -> "list[ItemTimes]":
    from prism_bench.extensions.persistent import FORMS
    from prism_bench.extensions.persistent.records import GRAPH, LAUNCH

    forms = FORMS if stage == STAGE else (GRAPH, LAUNCH)
    return [row for form in forms if (row := record.row(case.name, form))]


# Traffic and scratch of a stage by its host plan, without device or emulator.


@dataclass(frozen=True)
class Planned:
    """One stage by its plan: `bytes` are the sum of each launch's compulsory bytes, `least` those of the whole.

    A launch reads or writes each of its arrays once. A launch without a new array to write works in place: it reads and
    writes at least its smallest array. Consecutive launches with the same arrays are one step (a product and the sum of
    its parts): together they read and write the arrays of other launches once. Scratch counts if a launch hands it on
    to another (`temporaries`, which take `temporary_bytes`); all other scratch is a launch's own (`workspace_bytes`).
    """

    launches: int
    bytes: int
    least: int
    temporaries: tuple[str, ...]
    temporary_bytes: int
    workspace_bytes: int


def planned(case: Case, chain: Chain, device: Device) -> Planned:
    """Return the stage `case` of the chain, as `device` would be given it."""
    steps = [step for step in case.plan.steps(device) if isinstance(step, Zero) or not step.is_empty]
    launches = sum(isinstance(step, Launch) for step in steps)
    named = [_named(case, step) for step in steps]
    uses = Counter(name for names in named for name in names)
    scratch = [array.name for array in case.spec.arrays if array.scratch and uses[array.name]]
    kept = tuple(name for name in scratch if name in chain.between and uses[name] > 1)
    workspace = [name for name in scratch if name not in kept]
    total = case.sizes.bytes_moved if launches == len(steps) == 1 else sum(_moved(case, named, workspace, uses))
    return Planned(launches, total, case.sizes.bytes_moved, kept, _size(case, kept), _size(case, workspace))


def _size(case: Case, names: Iterable[str]) -> int:
    return sum(case.sizes.nbytes(name) for name in names)


def _named(case: Case, step: Launch | Zero) -> tuple[str, ...]:
    """Return the arrays that a step is given, each once."""
    if isinstance(step, Zero):
        return (step.name,)
    names = case.spec.passed(step)
    return tuple(dict.fromkeys(name for name in names if isinstance(case.spec.argument(name), Array)))


def _moved(
    case: Case, named: Sequence[tuple[str, ...]], workspace: Sequence[str], uses: Mapping[str, int]
) -> Iterator[int]:
    """Yield the bytes of each step."""
    written: set[str] = set()
    arrays = {array.name: array for array in case.spec.arrays}
    for names, alike in groupby(named):
        passed, count = [name for name in names if name not in workspace], len(list(alike))
        handed = [name for name in passed if not arrays[name].reads]
        both = [name for name in passed if isinstance(arrays[name], InOut)]
        both += [name for name in handed if arrays[name].scratch and uses[name] == count > 1]
        if not both and handed and written.issuperset(handed):
            both.append(min(handed, key=case.sizes.nbytes))
        written.update(handed)
        yield _size(case, (*passed, *both))


# Figures of a stage of a chain at a workload.

_TRACERS = ("cupti", "nsys")


@dataclass(frozen=True)
class StageRow:
    """One stage of a chain at one workload.

    Its `figures` by name:

    cold_time, hot_time, launch_time, issued   seconds of one evaluation; `issued` is that of `saving.timed`
    gaps            seconds of one evaluation in which the device waits for the next launch
    emulated        different bytes that every launch touched on the emulator; `requested` those it asked for
    dram_bytes      counted by a profiler;  dram_share, tensor_share: likewise
    energy          joules of one evaluation, replayed
    error           largest relative error against the float64 reference, over outputs and seeds
    `floor`         seconds in which the whole chain's compulsory bytes move at the copy ceiling

    `speedups` and `savings` against the baseline are by clock; a clock without times has no saving. The speedup named
    `library` is that against the fastest library call, cold. `passed` is the plan's rule, by the cold clock; None where
    it is not decided, and for the baseline.
    """

    stage: str
    case: str
    plan: Planned
    figures: Mapping[str, Figure]
    speedups: Mapping[str, Speedup]
    savings: Mapping[str, Saving]
    passed: bool | None
    notes: tuple[str, ...] = ()

    def value(self, name: str) -> float | None:
        """Return the figure of that name; None if it is missing."""
        return self.figures[name].value


@dataclass(frozen=True)
class Seen:
    """Known facts of a stage: its `case` and `plan`, the record's `result` and the emulator's `traffic`.

    `missing` is why there is no result, `uncounted` why no traffic. `counted` is the case where a profiler counted it
    in another record.
    """

    stage: str
    case: Case
    plan: Planned
    result: CaseResult | None
    traffic: CaseTraffic | None
    missing: str
    uncounted: str
    counted: CaseResult | None = None

    def timed(self, clock: str) -> Timed:
        """Return its time by `clock`."""
        return timed(self.result, clock, self.missing)


def figures(seen: Seen, least_time: Figure) -> dict[str, Figure]:
    """Return all figures of a stage; `least_time` is that of the chain's compulsory bytes."""
    times = {clock: seen.timed(clock).figure for clock in (*CLOCKS, "launch_time")}
    return {
        **times,
        "gaps": _gaps(seen, times),
        **_emulated(seen),
        **{name: _counted(seen, name) for name in ("dram_bytes", "dram_share", "tensor_share")},
        "energy": _energy(seen),
        "error": _error(seen),
        "floor": least_time,
    }


def _gaps(seen: Seen, times: Mapping[str, Figure]) -> Figure:
    """Return what a tracer measured, or how much longer the host takes to launch than the device to work."""
    profile = seen.result.profile if seen.result else {}
    traced = value(seen.result, "gap_seconds") if seen.result and profile.get("tool") in _TRACERS else None
    if traced is not None:
        return Figure(traced, f"traced by {profile['tool']}")
    host, device = times["launch_time"], times["hot_time"]
    if host.value is None or device.value is None:
        return absent(host.reason or device.reason)
    return Figure(max(0.0, host.value - device.value), "host time to launch it, less the device's hot time")


def _emulated(seen: Seen) -> dict[str, Figure]:
    traffic = seen.traffic
    if traffic is None or not traffic.launches:
        gap = absent((traffic.complaint if traffic else None) or seen.uncounted)
        return {"emulated": gap, "requested": gap}
    touched = Figure(traffic.touched + traffic.scratch, "different bytes of every launch, on the emulator")
    return {"emulated": touched, "requested": Figure(traffic.requested, "all accesses, on the emulator")}


def _counted(seen: Seen, name: str) -> Figure:
    """Return the figure by the record's counters or another record's, if that launched what today's plan launches."""
    for result in filter(None, (seen.result, seen.counted)):
        count = dram_bytes(result) if name == "dram_bytes" else value(result, name)
        launched = value(result, "launches")
        if count is None:
            continue
        if launched is not None and launched != seen.plan.launches:
            return absent(f"counted in {launched:.0f} launches, today's plan makes {seen.plan.launches}")
        return Figure(count, f"counters of {result.profile.get('tool', 'a profiler')}")
    known = seen.result or seen.counted
    return absent("no record holds counters of it; 'prism-bench profile' reads them" if known else seen.missing)


def _energy(seen: Seen) -> Figure:
    if seen.result is None:
        return absent(seen.missing)
    energies = [
        measurement.launch_energy
        for measurement in seen.result.measurements
        if measurement.subject == "kernel" and measurement.launch_energy
    ]
    known = next((energy for energy in energies if energy.joules is not None), None)
    if known:
        return Figure(known.joules, "the board's counter over a hot replay")
    alone = "energy is reported for launches that are long enough to count alone"
    return absent(next((energy.reason for energy in energies), alone))


def _error(seen: Seen) -> Figure:
    if seen.result is None:
        return absent(seen.missing)
    errors = [number(check.get("max_relative")) for check in seen.result.verification]
    known = [error for error in errors if error is not None]
    if not known:
        return absent(seen.result.reason or "the record holds no verification of it")
    return Figure(max(known), "largest relative error against the float64 reference")


# Ledgers of chains.


@dataclass(frozen=True)
class Sources:
    """Sources of the ledger.

    A run record of a GPU, traffic on the emulator by the case's name, the times of served items, and `counters`
    of profilers by the case's name, for cases of which the record holds none. `missing` is why there is no
    record, `uncounted` why a stage has no traffic.
    """

    record: RunRecord | None = None
    traffic: Mapping[str, CaseTraffic] = field(default_factory=dict)
    missing: str = "no record of a GPU was read"
    uncounted: str = "not counted: --backend emulator counts it"
    latencies: "LatencyRecord | None" = None
    counters: Mapping[str, Counted] = field(default_factory=dict)

    @property
    def device(self) -> Device:
        """The device that the plans are made for: a record's, or one like the emulator's."""
        known = self.record or next((counter.record for counter in self.counters.values()), None)
        facts = known.machine if known else {}
        numbers = {name: int(facts[name]) for name in ("sm_count", "compute_capability") if name in facts}
        return Device(**numbers)

    def prices(self) -> Prices:
        """Return the cost of launches and bytes on the record's machine."""
        if self.record is None:
            return Prices(None, None, 0)
        return Prices.of(limits_of(self.record), cache_bytes(self.record.machine))


@dataclass(frozen=True)
class ChainLedger:
    """One chain at one workload: its stages, from separate launches to the most fused.

    `library` is the cold time of the fastest library call for the same, whose name is the figure's source; `answers`
    are how long a host waits for each stage.
    """

    chain: str
    label: str
    workload: str
    rows: tuple[StageRow, ...]
    library: Figure
    answers: tuple[ChainAnswer, ...] = ()

    def row(self, stage: str) -> StageRow | None:
        """Return the row of that stage, or None."""
        return next((row for row in self.rows if row.stage == stage), None)


def chains_of(catalogue: Catalogue, names: Iterable[str] = ()) -> list[tuple[KernelSpec, Chain]]:
    """Return the chains of those names (a chain's, or a kernel's with chains) with their kernels, by default all."""
    every = [(spec, chain) for spec in catalogue.kernels.values() for chain in spec.chains]
    if not every:
        raise UsageError(f"{catalogue.folder}: no kernel of the catalogue has chains; a spec names them in 'chains'")
    known = {word for spec, chain in every for word in (chain.name, spec.name)}
    wanted = [catalogue.aliases.get(name, name) for name in names]
    for name in wanted:
        if name not in known:
            raise unknown("chain", name, known)
    return [(spec, chain) for spec, chain in every if not wanted or {spec.name, chain.name} & set(wanted)]


def stages_of(spec: KernelSpec, chain: Chain, label: str) -> dict[str, Case]:
    """Return the chain's cases at that label, by stage; a stage that is not timed there is left out."""
    cases: dict[str, Case] = {}
    for stage, variant in chain.stages.items():
        form = spec.with_variant(variant) if variant else spec
        if label in (form.only_labels or form.workloads):
            cases[stage] = Case(form, form.workloads[label], label, variant)
    return cases


def ledgers(chains: Iterable[tuple[KernelSpec, Chain]], labels: Iterable[str], sources: Sources) -> list[ChainLedger]:
    """Return a ledger for each chain and label at which any of its stages is timed."""
    for label in labels:
        if label not in LABELS:
            raise unknown("label", label, LABELS)
    pairs = [(chain, stages_of(spec, chain, label)) for spec, chain in chains for label in labels]
    return [_ledger(chain, stages, sources) for chain, stages in pairs if stages]


def _ledger(chain: Chain, stages: Mapping[str, Case], sources: Sources) -> ChainLedger:
    seen = {stage: _seen(stage, case, chain, sources) for stage, case in stages.items()}
    first, before = next(iter(stages.values())), seen.get("baseline")
    # The fastest library call timed with the baseline, or with the first stage that has one.
    calls = [library(entry.result, entry.missing) for stage, entry in seen.items() if stage != STAGE]
    without = calls[0] if calls else Timed(reason="no stage is launched")
    call = next((call for call in calls if call.measurement), without)
    prices = sources.prices()
    rows = tuple(_row(entry, before, call, prices) for entry in seen.values())
    launches = {stage: planned(case, chain, sources.device).launches for stage, case in stages.items()}
    waits = answers(stages, launches, sources.latencies)
    return ChainLedger(chain.name, first.label, str(first.workload), rows, call.figure, waits)


def _seen(stage: str, case: Case, chain: Chain, sources: Sources) -> Seen:
    plan, traffic = planned(case, chain, sources.device), sources.traffic.get(case.name)
    if stage == STAGE:  # a queue kernel calls its kernels: it has no launch, and so no clock of launches
        missing = "an item that is served is no launch: it is timed from request to answer, by scripts/persistent"
        return Seen(STAGE, case, replace(plan, launches=0), None, traffic, missing, sources.uncounted)
    result = sources.record.case(case.name) if sources.record else None
    missing = "the record does not hold this case" if sources.record else sources.missing
    counted = sources.counters[case.name].case if case.name in sources.counters else None
    return Seen(stage, case, plan, result, traffic, missing, sources.uncounted, counted)


def _row(seen: Seen, baseline: Seen | None, call: Timed, prices: Prices) -> StageRow:
    by_name = figures(seen, _least_time(seen, prices))
    against = baseline if baseline and baseline.case.workload == seen.case.workload else None
    speedups: dict[str, Speedup] = {}
    savings: dict[str, Saving] = {}
    passed = None
    if against and seen.stage not in ("baseline", STAGE):
        speedups = {clock: speedup(against.timed(clock), seen.timed(clock)) for clock in CLOCKS}
        speedups["library"] = speedup(call, seen.timed("cold_time"))
        divided = {clock: saving(_cost(against, clock), _cost(seen, clock), prices) for clock in DIVIDED}
        savings = {clock: stage_saving for clock, stage_saving in divided.items() if stage_saving}
        # The plan's rule: fused and unfused differ at most by the sum of their errors against one reference.
        error, theirs = by_name["error"].value, figures(against, absent(""))["error"].value
        both = None if error is None or theirs is None else error + theirs
        passed = pass_rule().verdict(both, speedups["cold_time"].ratio)
    notes = tuple(_notes(seen, against))
    return StageRow(seen.stage, seen.case.name, seen.plan, by_name, speedups, savings, passed, notes)


def _least_time(seen: Seen, prices: Prices) -> Figure:
    seconds = prices.traffic(seen.plan.least)
    if seconds is None:
        return absent("the record measured no copy ceiling" if seen.result else seen.missing)
    return Figure(seconds, "compulsory bytes of the whole chain over the copy ceiling")


def _cost(seen: Seen, clock: str) -> StageCost:
    by_name = figures(seen, absent(""))
    counted, emulated = by_name["dram_bytes"].value, by_name["emulated"].value
    by_basis: dict[Basis, float | None] = {"counters": counted, "emulator": emulated, "model": seen.plan.bytes}
    return StageCost(seen.timed(clock), seen.plan.launches, by_basis)


def _notes(seen: Seen, against: Seen | None) -> Iterator[str]:
    launched = seen.result.code.get("launches") if seen.result else None
    if launched is not None and launched != seen.plan.launches:
        yield f"{seen.case.name}: the record made {launched} launches, today's plan makes {seen.plan.launches}"
    if against is None and seen.stage not in ("baseline", STAGE):
        yield f"{seen.case.name}: separate launches are not timed at this workload"


# The published table (Baseline, Partial, Full and Target) next to our figures.


@dataclass(frozen=True)
class OurRow:
    """Our row for a published one: of `what`, by stage.

    `met` is whether our most fused stage among the table's keeps the plan's target, None if that has no figure.
    """

    what: str
    stages: Mapping[str, Figure]
    met: bool | None


@dataclass(frozen=True)
class ComparedRow:
    """Published row and our rows for it, one for each workload of a chain."""

    published: PublishedRow
    ours: tuple[OurRow, ...]


def compared(ledgers: Sequence[ChainLedger]) -> tuple[ComparedRow, ...]:
    """Return the rows of the plan's table that are about any of the ledgers' chains."""
    known = {ledger.chain for ledger in ledgers}
    rows = [row for row in published_rows() if known & set(row.chains)]
    mine = {row.name: [ledger for ledger in ledgers if ledger.chain in row.chains] for row in rows}
    return tuple(ComparedRow(row, tuple(_ours(row, mine[row.name]))) for row in rows)


def _ours(row: PublishedRow, mine: Sequence[ChainLedger]) -> Iterator[OurRow]:
    if row.quantity == "launches":
        yield _launches(row, [ledger for ledger in mine if ledger.label == "S0"])
        return
    name = "cold_time" if row.quantity == "time" else row.quantity
    rows = [
        OurRow(f"{ledger.chain} {ledger.label}", stages, row.met(stages["full"].value))
        for ledger in mine
        if (stages := {stage: _figure(ledger, stage, name) for stage in STAGES})
    ]
    measured = [
        candidate for candidate in rows if any(figure.value is not None for figure in candidate.stages.values())
    ]
    yield from measured or [OurRow("none of them", rows[0].stages, None)]


def _figure(ledger: ChainLedger, stage: str, name: str) -> Figure:
    row = ledger.row(stage)
    return row.figures[name] if row else absent(f"{ledger.chain} has no stage '{stage}' at {ledger.label}")


def _launches(row: PublishedRow, mine: Sequence[ChainLedger]) -> OurRow:
    """Return the launches of all the row's chains together; no sum if a chain lacks the stage."""
    stages: dict[str, Figure] = {}
    for stage in STAGES:
        plans = [stage_row.plan for ledger in mine if (stage_row := ledger.row(stage))]
        has_all = plans and len(plans) == len(mine)
        total = Figure(sum(plan.launches for plan in plans), "launches of the plans")
        stages[stage] = total if has_all else absent(f"not every chain has a stage '{stage}'")
    whole = len(mine) == len(row.chains)
    what = " + ".join(ledger.chain for ledger in mine) or "none of them"
    return OurRow(f"{what}, S0", stages, row.met(stages["full"].value) if whole else None)
