"""Run records: everything that one run measured on one machine at one commit, see `schema` for every field.

`encode` and `decode` convert records to and from the JSON of their files.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, get_args

from prism_bench import display
from prism_bench.errors import UsageError
from prism_bench.io.documents import no_collection
from prism_bench.io.installation import extras_named
from prism_bench.record.identity import Owner, environment_of, uuids_of
from prism_bench.record.measurement import Measurement, packed, plain_energy, plain_evidence, whole
from prism_bench.record.schema import (
    SCHEMA,
    CaseFields,
    CaseFile,
    CaseTables,
    JsonTable,
    RecordFields,
    Status,
    checked_case,
    checked_measurement,
    checked_with_tables,
    impossible,
)
from prism_bench.spec.metric import STAND_INS, StandIn, value_text
from prism_bench.spec.peer import PeerFacts
from prism_bench.units import count_text, time_text

IMPORTED = "imported"  # family and label of a case that another tool measured
TESTED = "pytest"  # family of a case that a test timed: its name is the test's node id
STATUSES = get_args(Status)
NOT_TIMED = "not timed, because "  # begins the reason of a case whose kernel is wrong at an edge
_EDGES = ("edge", "golden")  # labels of cases that are verified and not timed
CARRIED = "carried"  # in a verification's entries the moment when it was verified, if an earlier run did
CARRIED_FROM = "carried_from"  # next to it the name of that run's record
_PLOTTED = 30  # cases of one plot at most: more rows cannot be read
_PEER = "peer:"


@dataclass(frozen=True)
class CaseResult(CaseFields):
    """What a run measured and verified of one case; `measurements` is empty unless the status is ok."""

    measurements: tuple[Measurement, ...] = ()
    peers: Mapping[str, PeerFacts] = field(default_factory=dict[str, PeerFacts])

    @property
    def workload_text(self) -> str:
        """The axes as a case's name writes them."""
        return ",".join(f"{axis}={value}" for axis, value in self.workload.items())

    @property
    def is_edge(self) -> bool:
        """Whether it was verified and is never timed.

        A golden case may share its workload with a timed one: a case with times is no edge.
        """
        return self.label in _EDGES and not self.measurements

    @property
    def carried(self) -> str | None:
        """The moment when an earlier run verified it; None if this run did, or nothing did."""
        return next((str(entry[CARRIED]) for entry in self.verification if CARRIED in entry), None)

    @property
    def carried_from(self) -> str | None:
        """The name of the record of the run that verified it, where an earlier run with a record did."""
        return next((str(entry[CARRIED_FROM]) for entry in self.verification if CARRIED_FROM in entry), None)

    @property
    def main_metric(self) -> str:
        """The metric in which the case is compared: cold time, or wall time where it ran on a CPU only."""
        return "cold_time" if any(entry.metric == "cold_time" for entry in self.measurements) else "wall_time"

    def measurement(self, metric: str, subject: str = "kernel") -> Measurement | None:
        """Return the measurement of `metric` of `subject`, or None."""
        wanted = metric, subject
        return next((entry for entry in self.measurements if (entry.metric, entry.subject) == wanted), None)

    def __repr__(self) -> str:
        """Return one line: `<CaseResult softmax[rows=32,cols=1000] ok, 5.31 us>`."""
        seconds = _main_seconds(self)
        return f"<CaseResult {self.name} {self.status}{f', {time_text(seconds)}' if seconds else ''}>"

    def _repr_html_(self) -> str:
        """Return the case's status, bars of its main time and its peers', and a table of what else was measured."""
        metric = self.main_metric
        rows = [
            (entry.subject.removeprefix(_PEER), entry.median, time_text(entry.median))
            for entry in self.measurements
            if entry.metric == metric and entry.median
        ]
        others = [
            [entry.metric, value_text(entry.metric, entry.median), entry.reason or ""]
            for entry in self.measurements
            if entry.subject == "kernel"
        ]
        heading = f"{self.name}: {self.status}" + (f" ({self.reason})" if self.reason else "")
        return display.view(heading, display.bars(rows), display.table(["metric", "median", "reason"], others))


@dataclass(frozen=True)
class RunRecord(RecordFields):
    """A record in memory."""

    cases: tuple[CaseResult, ...]

    @property
    def owner(self) -> Owner:
        """Machine, backend and environment: records of one owner make series."""
        return str(self.machine.get("id")), self.backend, environment_of(self.backend, self.software)

    @property
    def uuids(self) -> tuple[str, ...]:
        """The devices behind it, in the order of their UUIDs."""
        return uuids_of(self.machine, self.parts)

    def unit_of(self, kernel: str) -> str | None:
        """Return the UUID of the device that measured the kernel; None if unknown, or for a ceiling of several."""
        if self.machine.get("uuid"):
            return self.machine["uuid"]
        return next((part.get("uuid") for part in self.parts if kernel in part.get("kernels", ())), None)

    def board_of(self, case: CaseResult) -> str | None:
        """Return the UUID of the board that measured the case; None if unknown, or where several did."""
        return case.board or self.unit_of(case.kernel)

    def host_of(self, case: CaseResult) -> str | None:
        """Return what sets apart the host whose clock timed the case; None where it is unknown.

        It is the digest that the GPU's board has of its host, in older records the board itself, and without a GPU the
        machine's id; with the host's processor and cores, since virtual machines may share a name.
        """
        digests = {str(board["uuid"]): str(board["host"]) for board in self.boards if board.get("host")}
        board = self.board_of(case)
        if not self.uuids:
            host: str | None = str(self.machine.get("id"))
        elif board is None and len(digests) == len(self.boards) and len(set(digests.values())) == 1:
            host = next(iter(digests.values()))
        else:
            host = digests.get(board, f"board {board}") if board else None
        facts: JsonTable = self.machine.get("host") or {}
        sizes = [f"{word} {facts[word]}" for word in ("processor", "cores") if facts.get(word) is not None]
        return ", ".join([host, *sizes]) if host else None

    @property
    def imported(self) -> bool:
        """Whether another tool measured all of it: nothing was verified here, and nothing was promised for it."""
        return bool(self.cases) and all(case.family == IMPORTED for case in self.cases)

    @property
    def stand_in(self) -> StandIn | None:
        """What was timed in place of kernels; None where the backend runs what the record is about."""
        return STAND_INS.get(self.backend)

    def case(self, name: str) -> CaseResult | None:
        """Return the result of the case called `name`, or None."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, CaseResult]:
        return {case.name: case for case in reversed(self.cases)}

    def __repr__(self) -> str:
        """Return one line: `<RunRecord 279 cases, NVIDIA H200, cuda, 2026-11-22T23:05:46, commit 2034ef74>`."""
        device = self.machine.get("name") or "unknown machine"
        commit = f", commit {self.commit[:8]}" if self.commit else ""
        return f"<RunRecord {count_text(len(self.cases), 'case')}, {device}, {self.backend}, {self.created}{commit}>"

    def _repr_html_(self) -> str:
        """Return how many cases have each status, the main times of every label, and the cases that are not ok."""
        counted = Counter(case.status for case in self.cases)
        heading = ", ".join(f"{count} {status}" for status, count in counted.most_common()) or "no cases"
        times: dict[str, list[float]] = {case.label: [] for case in self.cases}
        for case in self.cases:
            if seconds := _main_seconds(case):
                times[case.label].append(seconds)
        groups = sorted(times.items())
        every = [value for _, values in groups for value in values]
        ends = (time_text(min(every)), time_text(max(every))) if every else None
        bad = [
            [case.name, case.status, case.reason or ""] for case in self.cases if case.status not in ("ok", "skipped")
        ]
        table = display.table(["case", "status", "reason"], bad)
        return display.view(f"{repr(self)[1:-1]}: {heading}", display.dots(groups, ends), table)

    def plot(self, pattern: str = "*", label: str | None = None) -> Any:
        """Return a Matplotlib figure of the main time of each case and of its peers, the slowest case first.

        `pattern` selects cases by name or kernel, as a shell does; `label` is S0, S1 or S2. At most 30 cases are drawn,
        and the title has their number. Raise a UsageError where no case with a time fits.
        """
        cases = [
            case
            for case in self.cases
            if _main_seconds(case)
            and (label is None or case.label == label)
            and (fnmatchcase(case.kernel, pattern) or fnmatchcase(case.name, pattern))
        ]
        if not cases:
            wanted = f"'{pattern}'" + (f" at {label}" if label else "")
            raise UsageError(f"no case with a time fits {wanted}; the record has {count_text(len(self.cases), 'case')}")
        return _figure(sorted(cases, key=lambda case: _main_seconds(case) or 0.0, reverse=True))


def encode(record: RunRecord) -> JsonTable:
    """Return the record as plain JSON values."""
    names = [name.name for name in fields(RunRecord)]
    absent = ("parts", "spent", "boards", "committed", "guessed")
    plain = {key: value for key in names if (value := getattr(record, key)) or key not in absent}
    plain |= {key: list(plain[key]) for key in ("monitor", "parts", "boards", "guessed") if key in plain}
    cases = [encode_case(case) for case in record.cases]
    return {"schema": SCHEMA, **plain, "cases": cases}


def encode_case(case: CaseResult) -> JsonTable:
    """Return the case as plain JSON values; infinities and NaN of its verification become the words `inf` and `nan`."""
    plain = {
        key: value
        for key, value in vars(case).items()
        if value or key not in ("before", "peers", "spent", "board", "control")
    }
    measurements = [encode_measurement(measurement) for measurement in case.measurements]
    verification = [
        {
            key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in entry.items()
        }
        for entry in case.verification
    ]
    return {**plain, "verification": verification, "measurements": measurements}


def encode_measurement(measurement: Measurement) -> JsonTable:
    """Return the measurement as plain JSON values; samples keep four significant digits."""
    plain = {key: value for key, value in vars(measurement).items() if key not in ("evidence", "energy", "boards")}
    plain["processes"] = [packed(process) for process in measurement.processes]
    plain["clocks"] = [[whole(clock / 1e6) for clock in process] for process in measurement.clocks]
    watched = {
        "evidence": [plain_evidence(evidence) for evidence in measurement.evidence],
        "energy": plain_energy(measurement.energy),
        "boards": list(measurement.boards),
    }
    return plain | {key: value for key, value in watched.items() if value}


def decode(source: object, origin: str, *, edges: bool = True) -> RunRecord:
    """Return the record in `source`, JSON text or parsed JSON; a ResultsError names `origin` and what is damaged.

    Without `edges` it has only the cases that are timed; the others are checked, too.
    """
    with no_collection():
        file, tables = checked_with_tables(source, origin)
        fields: JsonTable = vars(file) | {name: getattr(tables, name) for name in tables.__struct_fields__}
        del fields["schema"]
        cases = zip(file.cases, tables.cases, strict=True)
        kept = (pair for pair in cases if edges or pair[0].measurements or pair[0].label not in _EDGES)
        fields["cases"] = tuple(_case(case, case_tables) for case, case_tables in kept)
        return RunRecord(**fields)


def decode_case(plain: object) -> CaseResult:
    """Return the inverse of `encode_case`; a ResultsError where it is damaged."""
    return _case(*checked_case(plain, "case"))


def _case(file: CaseFile, tables: CaseTables) -> CaseResult:
    # msgspec keeps no default in the instance's own fields, and only `flops` has none in the result.
    fields: JsonTable = {"flops": file.flops, **vars(file)}
    fields |= {name: getattr(tables, name) for name in tables.__struct_fields__}
    fields["measurements"] = tuple(entry.unpacked(impossible(file, entry)) for entry in file.measurements)
    return CaseResult(**fields)


def decode_measurement(plain: object) -> Measurement:
    """Return the inverse of `encode_measurement`; a ResultsError where it is damaged."""
    return checked_measurement(plain, "measurement").unpacked()


def _figure(cases: Sequence[CaseResult]) -> Any:
    with extras_named():
        from matplotlib.figure import Figure

    shown = cases[:_PLOTTED]
    figure = Figure(figsize=(9, 1.2 + 0.28 * len(shown)), layout="constrained")
    axes: Any = figure.add_subplot()
    for row, case in enumerate(shown):
        axes.plot([_main_seconds(case) or 0.0], [row], "o", color="C0", label="kernel" if row == 0 else None)
        peers = [
            measurement.median
            for measurement in case.measurements
            if measurement.metric == case.main_metric and measurement.subject.startswith(_PEER)
            if measurement.valid and measurement.median
        ]
        axes.plot(peers, [row] * len(peers), "|", color="C1", markersize=10, label="peers" if row == 0 else None)
    axes.set(xscale="log", xlabel="seconds", yticks=range(len(shown)), yticklabels=[case.name for case in shown])
    axes.invert_yaxis()
    axes.legend()
    number = count_text(len(cases), "case")
    axes.set_title(f"{len(shown)} of {number}" if len(shown) < len(cases) else number)
    return figure


def _main_seconds(case: CaseResult) -> float | None:
    measurement = case.measurement(case.main_metric)
    return measurement.median if measurement and measurement.valid else None
