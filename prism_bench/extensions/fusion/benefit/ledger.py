"""The ledger of fusion: every chain at every workload, stage by stage, against its separate launches."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from prism_bench.analysis.bounds.profile_table import Counted
from prism_bench.analysis.summary import cache_bytes, limits_of
from prism_bench.catalogue import Catalogue
from prism_bench.errors import UsageError, unknown
from prism_bench.extensions.fusion.benefit.answers import STAGE as SERVED
from prism_bench.extensions.fusion.benefit.answers import ChainAnswer, answers
from prism_bench.extensions.fusion.benefit.figure import Figure, absent
from prism_bench.extensions.fusion.benefit.plan import planned
from prism_bench.extensions.fusion.benefit.published import pass_rule
from prism_bench.extensions.fusion.benefit.row import Seen, StageRow, figures
from prism_bench.extensions.fusion.benefit.saving import (
    CLOCKS,
    DIVIDED,
    Basis,
    Prices,
    Saving,
    Speedup,
    StageCost,
    Timed,
    library,
    saving,
    speedup,
)
from prism_bench.record.run_record import RunRecord
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Chain, KernelSpec
from prism_bench.spec.workload import LABELS
from prism_bench.workflows.traffic import CaseTraffic

if TYPE_CHECKING:
    from prism_bench.extensions.persistent.record import LatencyRecord


@dataclass(frozen=True)
class Sources:
    """What the ledger is read from.

    That is a run record of a GPU, traffic on the emulator by the case's name, the times of served items, and `counters`
    of profilers by the case's name, for cases of which the record holds none. `missing` is why there is no
    record, `uncounted` why a stage has no traffic.
    """

    record: RunRecord | None = None
    traffic: Mapping[str, CaseTraffic] = field(default_factory=dict)
    missing: str = "no record of a GPU was read"
    uncounted: str = "not counted: --emulate counts it"
    latencies: "LatencyRecord | None" = None
    counters: Mapping[str, Counted] = field(default_factory=dict)

    @property
    def device(self) -> Device:
        """The device that the plans are made for: a record's, or one like the emulator's."""
        known = self.record or next((one.record for one in self.counters.values()), None)
        facts = known.machine if known else {}
        numbers = {name: int(facts[name]) for name in ("sm_count", "compute_capability") if name in facts}
        return Device(**numbers)

    def prices(self) -> Prices:
        """Return what launches and bytes cost on the record's machine."""
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
    found: dict[str, Case] = {}
    for stage, variant in chain.stages.items():
        own = spec.with_variant(variant) if variant else spec
        if label in (own.only_labels or own.workloads):
            found[stage] = Case(own, own.workloads[label], label, variant)
    return found


def ledgers(chains: Iterable[tuple[KernelSpec, Chain]], labels: Iterable[str], sources: Sources) -> list[ChainLedger]:
    """Return a ledger for each chain and label at which any of its stages is timed."""
    for label in labels:
        if label not in LABELS:
            raise unknown("label", label, LABELS)
    prices = sources.prices()
    pairs = [(chain, stages_of(spec, chain, label)) for spec, chain in chains for label in labels]
    return [_ledger(chain, stages, sources, prices) for chain, stages in pairs if stages]


def _ledger(chain: Chain, stages: Mapping[str, Case], sources: Sources, prices: Prices) -> ChainLedger:
    seen = {stage: _seen(stage, case, chain, sources) for stage, case in stages.items()}
    first, before = next(iter(stages.values())), seen.get("baseline")
    known = _library(seen)
    rows = tuple(_row(one, before, known, prices) for one in seen.values())
    launches = {stage: planned(case, chain, sources.device).launches for stage, case in stages.items()}
    waits = answers(stages, launches, sources.latencies)
    return ChainLedger(chain.name, first.label, str(first.workload), rows, known.figure, waits)


def _library(seen: Mapping[str, Seen]) -> Timed:
    """Return the fastest library call timed with the baseline, or with the first stage that has one."""
    calls = [library(one.result, one.missing) for stage, one in seen.items() if stage != SERVED]
    return next((one for one in calls if one.measurement), calls[0] if calls else Timed(reason="no stage is launched"))


def _seen(stage: str, case: Case, chain: Chain, sources: Sources) -> Seen:
    if stage == SERVED:
        return _served(case, chain, sources)
    result = sources.record.case(case.name) if sources.record else None
    missing = "the record does not hold this case" if sources.record else sources.missing
    plan = planned(case, chain, sources.device)
    counted = sources.counters[case.name].case if case.name in sources.counters else None
    return Seen(stage, case, plan, result, sources.traffic.get(case.name), missing, sources.uncounted, counted)


def _served(case: Case, chain: Chain, sources: Sources) -> Seen:
    """Return the stage whose kernels a queue kernel calls: nothing is launched, so no clock of a launch times it."""
    plan = replace(planned(case, chain, sources.device), launches=0)
    missing = "an item that is served is no launch: it is timed from request to answer, by scripts/persistent"
    return Seen(SERVED, case, plan, None, sources.traffic.get(case.name), missing, sources.uncounted)


def _row(seen: Seen, baseline: Seen | None, known: Timed, prices: Prices) -> StageRow:
    found = figures(seen, _least_time(seen, prices))
    against = baseline if baseline and baseline.case.workload == seen.case.workload else None
    speedups: dict[str, Speedup] = {}
    savings: dict[str, Saving] = {}
    if against and seen.stage not in ("baseline", SERVED):
        speedups = {clock: speedup(against.timed(clock), seen.timed(clock)) for clock in CLOCKS}
        speedups["library"] = speedup(known, seen.timed("cold_time"))
        divided = {clock: saving(_cost(against, clock), _cost(seen, clock), prices) for clock in DIVIDED}
        savings = {clock: one for clock, one in divided.items() if one}
    passed = _passed(against, found, speedups)
    notes = tuple(_notes(seen, against))
    return StageRow(seen.stage, seen.case.name, seen.plan, found, speedups, savings, passed, notes)


def _least_time(seen: Seen, prices: Prices) -> Figure:
    seconds = prices.traffic(seen.plan.least)
    if seconds is None:
        return absent("the record measured no copy ceiling" if seen.result else seen.missing)
    return Figure(seconds, "compulsory bytes of the whole chain over the copy ceiling")


def _cost(seen: Seen, clock: str) -> StageCost:
    found = figures(seen, absent(""))
    counted, emulated = found["dram_bytes"].value, found["emulated"].value
    by_basis: dict[Basis, float | None] = {"counters": counted, "emulator": emulated, "model": seen.plan.bytes}
    return StageCost(seen.timed(clock), seen.plan.launches, by_basis)


def _passed(against: Seen | None, found: Mapping[str, Figure], speedups: Mapping[str, Speedup]) -> bool | None:
    """Apply the plan's rule: fused and unfused differ at most by the sum of their errors against one reference."""
    if not speedups or against is None:
        return None
    own, theirs = found["error"].value, figures(against, absent(""))["error"].value
    return pass_rule().verdict(None if own is None or theirs is None else own + theirs, speedups["cold_time"].ratio)


def _notes(seen: Seen, against: Seen | None) -> Iterator[str]:
    launched = seen.result.code.get("launches") if seen.result else None
    if launched is not None and launched != seen.plan.launches:
        yield f"{seen.case.name}: the record made {launched} launches, today's plan makes {seen.plan.launches}"
    if against is None and seen.stage not in ("baseline", SERVED):
        yield f"{seen.case.name}: separate launches are not timed at this workload"
