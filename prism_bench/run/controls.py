"""Controls of a run: unchanged cases that fewer processes measure, since an earlier record has their time.

A case is a control where its verification is known (see `carrying`), a record of the last days measured it in all
processes on this board with this software, its machine code and launches are those of that record, and it is not its
turn. The first processes measure its cold time only. Where that deviates from the record by more than processes and the
machine do, the case is in doubt, and the other processes measure it too; where all controls moved together, all are.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import log, log1p
from typing import TYPE_CHECKING, Any

from prism_bench.measure.plausibility import valid
from prism_bench.record import identity
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.store.records import name_of
from prism_bench.run.settings import Settings, code_digest

if TYPE_CHECKING:
    from prism_bench.analysis.compare.noise import Noise

# Workers import this package: `prism_bench.analysis` is imported where it is needed.

DAYS = 7  # in which every case is measured in all processes at least once
METRIC = "cold_time"
# Of a hundred controls that did not change one is measured again, which costs little; a common change of all controls
# that is smaller is left to the trend, which sees each run.
_DOUBT, _TOGETHER = 0.01, 0.015


def is_turn(name: str, days: int, day: int) -> bool:
    """Return whether it is the turn of the name on that day: once in so many days, the same days for a name always."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % days == day % days


@dataclass(frozen=True)
class KnownTime:
    """Time of a case in the record of that name, measured in all processes, and the digest of its code."""

    record: str
    code: str
    measurement: Measurement


@dataclass(frozen=True)
class Controls:
    """Cases that may be controls, by name, and the machine's noise floors."""

    known: Mapping[str, KnownTime] = field(default_factory=dict[str, KnownTime])
    noise: "Noise | None" = None

    def only(self, names: Collection[str]) -> "Controls":
        """Return the controls of these names."""
        return replace(self, known={name: time for name, time in self.known.items() if name in names})

    def orders(self) -> dict[str, list[str]]:
        """Return by name what a worker gets: the name of the record, and the digest of the code."""
        return {name: [time.record, time.code] for name, time in self.known.items()}

    def in_doubt(self, results: Iterable[CaseResult]) -> set[str]:
        """Return the names of the controls among the results whose times deviate from those of their records."""
        from prism_bench.analysis.compare.earlier_runs import with_spreads
        from prism_bench.analysis.compare.estimate import estimate
        from prism_bench.analysis.compare.noise import control_of
        from prism_bench.analysis.compare.verdict import pair_of

        measured = {result.name: valid(result, METRIC) for result in results if result.control and not result.ceiling}
        pairs = with_spreads(
            {
                name: pair_of(
                    self.known[name].measurement, now, self.noise.spread(name, METRIC) if self.noise else None
                )
                for name, now in measured.items()
                if now and now.samples
            }
        )
        control = control_of(pairs)
        fit = replace(control.fit, scatter=0.0)  # it would hide that some controls moved
        doubts = measured.keys() - pairs.keys()
        for name, pair in pairs.items():
            shift = fit.at(pair.a.typical)
            ratio = estimate(pair.a, pair.b, pair.known).widened(control.widening).without(shift.log, shift.error)
            if not ratio.freedom or ratio.p < _DOUBT:
                doubts.add(name)
        # The clock, too, may be what moved all of them.
        together = control.used and max(abs(log(fit.factor)), abs(log(control.shift))) > log1p(_TOGETHER)
        return set(pairs) | doubts if together else doubts


def controls_of(
    records: Iterable[RunRecord],
    backend: str,
    facts: Mapping[str, Any],
    settings: Settings,
    noise: "Noise | None" = None,
    day: int | None = None,
) -> Controls:
    """Return the controls that the records of this machine, the newest first, allow on a day, today by default.

    The newest result of a case counts: a case that failed there is no control. A control is one again as long as the
    record that has its time is of the last days.
    """
    from prism_bench.analysis.compare.comparable import value_settings

    protocol, software = value_settings(settings.protocol(backend)), identity.software(facts.get("software", {}))
    day = datetime.now(UTC).toordinal() if day is None else day
    known: dict[str, KnownTime | None] = {}
    for record in records:
        if day - datetime.fromisoformat(record.created.replace("Z", "")).toordinal() >= DAYS:
            break
        alike = (record.backend, record.software) == (backend, software) and value_settings(record.protocol) == protocol
        name = name_of(record.created, record.commit and record.commit[:8], dirty=record.dirty)
        for case in record.cases:
            if case.is_edge or case.name in known:
                continue
            cold, code = valid(case, METRIC), code_digest(case.code)
            is_of_board = alike and record.board_of(case) == facts.get("uuid")
            if not (is_of_board and case.status == "ok" and cold and code):
                known[case.name] = None
            elif len(cold.processes) >= settings.processes:
                known[case.name] = KnownTime(name, code, cold)
    days = {name: time for name, time in known.items() if time and not is_turn(name, DAYS, day)}
    return Controls(days, noise)
