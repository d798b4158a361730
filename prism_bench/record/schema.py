"""Schema of a run record's file: what every field must be, the check that holds files to it, and possible values.

Keys that are not listed here are passed over: a newer minor version wrote them. `checked` returns the file as objects
of the schema, or names the first field that is damaged (`cases[3].measurements[0].processes[1].unit`).
`checked_with_tables` also returns the parts that are kept as tables (facts of the machine, code, profiles) with all of
their keys, so that saving a record again loses nothing.

A file may be of the right form and still hold a time of zero, a negative energy or a clock of a terahertz: `impossible`
names it. Such a measurement is invalid when it is read, with the reason, and keeps its samples: nobody computes with
them.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Literal, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from prism_bench.errors import ResultsError
from prism_bench.units import count_text

SCHEMA = 1
Status = Literal["ok", "wrong", "skipped", "crashed", "timed out", "failed"]

Int = Annotated[int, Meta(ge=-(2**62), le=2**62)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]  # that something took
Count = Annotated[int, Meta(ge=0, le=2**62)]
Name = Annotated[str, Meta(max_length=2_000)]
Text = Annotated[str, Meta(max_length=1_000_000)]
Named = Annotated[str, Meta(min_length=1, max_length=2_000)]
# JSON has no infinities: records hold them as words.
Number = Int | float | Annotated[str, Meta(pattern=r"^-?(nan|inf)$", max_length=4)] | None

Leaf = int | float | bool | Text | None  # `checked` holds its integers to 64 bits, with a sign or without
Flat = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float | bool | Text | None
Json1 = Flat | list[Flat] | dict[Name, Flat]
Json2 = Flat | list[Json1] | dict[Name, Json1]
Json3 = Flat | list[Json2] | dict[Name, Json2]
Json4 = Flat | list[Json3] | dict[Name, Json3]


class GroupFile(Struct, frozen=True, gc=False):
    """The samples of one process: counts of a unit in seconds."""

    unit: float
    counts: list[Int]


class EvidenceFile(Struct, frozen=True, gc=False):
    """See `measurement.Evidence`."""

    seconds: float
    readings: Count
    spans: dict[Name, tuple[float, float, float]] = {}
    reasons: dict[Name, float] = {}
    throttled: dict[Name, float] = {}
    neighbours: list[Text] = []
    busy_neighbours: bool = False
    events: list[Text] = []
    missing: dict[Name, Text] = {}
    lost: Text | None = None


class EnergyFile(Struct, frozen=True, gc=False):
    """See `measurement.Energy`."""

    joules: float | None = None
    uncertainty: float | None = None
    window: float | None = None
    launches: Count | None = None
    reason: Text | None = None


class MeasurementFile(Struct, frozen=True, gc=False):
    """See `measurement.Measurement`."""

    metric: Named
    subject: Named
    processes: list[GroupFile]
    clocks: list[list[int | float]] = []
    throttled: Count = 0
    valid: bool = True
    reason: Text | None = None
    notes: list[Text] = []
    evidence: list[EvidenceFile] = []
    energy: EnergyFile | None = None
    boards: list[Name] = []


class VerificationFile(Struct, frozen=True, gc=False):
    """One output of one seed, compared with its reference."""

    passed: bool = False
    seed: Int | None = None
    output: Text | None = None
    compared: Count | None = None
    differing: Count | None = None
    of: Count | None = None
    where: Text | None = None
    max_error: Number = None
    max_relative: Number = None
    norm_error: Number = None
    place: list[Int] | None = None
    actual: Number = None
    expected: Number = None
    tolerance: Text | None = None
    error: Text | None = None
    metric: Text | None = None
    sample: Count | None = None


class CodeFile(Struct, frozen=True, gc=False):
    """What is known of the machine code and its launches."""

    sass: Text | None = None
    language: Text | None = None
    compiler: Text | None = None
    source: Text | None = None
    registers: Count | None = None
    spill_bytes: Count | None = None
    shared_bytes: Count | None = None
    code_bytes: Count | None = None
    compile_seconds: Seconds | None = None
    launches: Count | None = None
    lanes: Count | None = None
    entries: list[Text] = []
    plan: list[Text] = []
    transfers: dict[Name, Count] = {}


class CounterFile(Struct, frozen=True, gc=False):
    """One value of a profiler, or why there is none."""

    value: float | None
    unit: Text
    source: Text | None = None
    reason: Text | None = None


class ProfileFile(Struct, frozen=True, gc=False):
    """What a profiler counted."""

    tool: Text = ""
    version: Text | None = None
    set: Text | None = None
    command: Text | None = None
    passes: Count | None = None
    kernels: Count | list[dict[Name, Json1]] | None = None
    values: dict[Name, CounterFile] = {}


class PeerFile(Struct, frozen=True, gc=False):
    """See `peer.PeerFacts`."""

    library: Text | None = None
    version: Text | None = None
    form: Text | None = None
    kind: Text | None = None
    calls: Count | None = None
    launches: Count | None = None
    enqueued: Text | None = None
    breaks: Count | None = None
    poor: Text | None = None
    work: Text | None = None
    precision: Text | None = None


class CaseFile(Struct, frozen=True, gc=False):
    """See `run_record.CaseResult`."""

    name: Named
    kernel: Named
    family: Name
    label: Name
    workload: dict[Name, Leaf]
    bytes: Int
    status: Status
    flops: Int | None = None
    variant: Name | None = None
    ceiling: Name | None = None
    arithmetic: Name = "fp32"
    before: Name | None = None
    reason: Text | None = None
    code: CodeFile = CodeFile()
    verification: list[VerificationFile] = []
    measurements: list[MeasurementFile] = []
    profile: ProfileFile = ProfileFile()
    configuration: dict[Name, Leaf] = {}
    peers: dict[Name, PeerFile] = {}
    spent: dict[Name, Seconds] = {}
    board: Named | None = None


class MachineFile(Struct, frozen=True, gc=False):
    """The facts of a machine that readers rely on."""

    id: Named
    device: Text | dict[Name, Json1] | None = None
    uuid: Text | None = None
    host: dict[Name, Json1] | None = None
    sm_count: Count | None = None
    l2_bytes: Count | None = None
    memory_bytes: Count | None = None
    memory_clock: Count | None = None
    memory_bus_bits: Count | None = None
    highest_sm_clock: Count | None = None
    fp32_lanes: Count | None = None


class MonitorFile(Struct, frozen=True, gc=False):
    """How well one process's device was watched."""

    hertz: float | None = None
    beats: Count | None = None
    cpu_share: float | None = None
    longest_beat: float | None = None
    lost: list[Text] = []
    missing: Text | None = None


class TuningFile(Struct, frozen=True, gc=False):
    """By which choices the launches were tuned."""

    asked: Text | None = None
    store: Text | None = None
    choices: dict[Name, dict[Name, Json1]] = {}
    stale: dict[Name, Text] = {}
    unused: Text | None = None


class PartFile(Struct, frozen=True, gc=False):
    """One part of a merged record."""

    uuid: Text | None
    kernels: list[Name]
    created: Name | None = None
    duration: float = 0.0


class BoardFile(Struct, frozen=True, gc=False):
    """One board; see `identity`."""

    uuid: Named
    vbios: Text | None = None
    power_limit: float | None = None
    application_sm_clock: float | None = None
    application_memory_clock: float | None = None
    boost_sm_clock: float | None = None
    host: Text | None = None

    def known(self) -> dict[str, str | float]:
        """Return the fields that are known."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


class RecordFile(Struct, frozen=True, gc=False):
    """See `run_record.RunRecord`."""

    schema: Annotated[int, Meta(ge=1, le=SCHEMA)]
    created: Name
    backend: Name
    machine: MachineFile
    software: dict[Name, Leaf]
    protocol: dict[Name, Json4]
    cases: list[CaseFile]
    commit: Name | None = None
    dirty: bool = False
    catalogue: Text = "built-in"
    complete: bool = True
    duration: float = 0.0
    monitor: list[MonitorFile] = []
    tuning: TuningFile = TuningFile()
    parts: list[PartFile] = []
    spent: dict[Name, Seconds] = {}
    boards: list[BoardFile] = []
    committed: Name | None = None
    guessed: list[Name] = []


class OpenCase(Struct, frozen=True, gc=False):
    """The tables of a case with all of their keys."""

    code: dict[Name, Json3] = {}
    verification: list[dict[Name, Json2]] = []
    profile: dict[Name, Json4] = {}
    peers: dict[Name, dict[Name, Json1]] = {}


class OpenRecord(Struct, frozen=True, gc=False):
    """The tables of a record with all of their keys."""

    machine: dict[Name, Json3]
    cases: list[OpenCase]
    monitor: list[dict[Name, Json2]] = []
    tuning: dict[Name, Json4] = {}
    parts: list[dict[Name, Json2]] = []
    boards: list[dict[Name, Json1]] = []


_Kind = TypeVar("_Kind")


def checked(source: object, origin: str) -> RecordFile:
    """Return the record in `source`, JSON text or parsed JSON; a ResultsError names `origin` and what is damaged."""
    return checked_with_tables(source, origin)[0]


def checked_with_tables(source: object, origin: str) -> tuple[RecordFile, OpenRecord]:
    """Return the record with those of its parts that are kept as tables; whoever reads it, all of it is checked."""
    found = _taken(source, RecordFile, origin)
    _require_sound(found, origin)
    return found, _taken(source, OpenRecord, origin)


def checked_case(plain: object, origin: str) -> tuple[CaseFile, OpenCase]:
    """Return one case of parsed JSON, checked and open."""
    found = _taken(plain, CaseFile, origin)
    _require_numbers([found.workload, found.configuration], origin)
    return found, _taken(plain, OpenCase, origin)


def checked_measurement(plain: object, origin: str) -> MeasurementFile:
    """Return one measurement of parsed JSON."""
    return _taken(plain, MeasurementFile, origin)


def _taken(source: object, kind: type[_Kind], origin: str) -> _Kind:
    decode: Callable[..., _Kind] = msgspec.json.decode if isinstance(source, bytes | bytearray) else msgspec.convert
    try:
        return decode(source, type=kind)
    except msgspec.ValidationError as error:
        if kind is RecordFile:
            _require_schema(source, origin)
        raise ResultsError(f"{origin}: damaged run record ({_words(error)})") from error
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ResultsError(f"{origin}: not a readable run record ({error})") from error


def _require_schema(source: object, origin: str) -> None:
    """Say so where the file is no run record at all, or of a newer schema."""
    try:
        plain = msgspec.json.decode(source) if isinstance(source, bytes | bytearray) else source
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ResultsError(f"{origin}: not a readable run record ({error})") from error
    if not isinstance(plain, dict) or "schema" not in plain or "cases" not in plain:
        raise ResultsError(f"{origin}: not a run record (no 'schema' and 'cases')")
    if isinstance(plain["schema"], int) and plain["schema"] > SCHEMA:
        raise ResultsError(f"{origin}: schema {plain['schema']} is newer than {SCHEMA}; upgrade prism-bench to read it")


def _words(error: Exception) -> str:
    """Put the place before the complaint: `cases[3].bytes: expected int, got str`."""
    message, _, path = str(error).partition(" - at ")
    place = path.strip("`").removeprefix("$").removeprefix(".")
    message = message.replace("`", "")
    return f"{place}: {message[:1].lower()}{message[1:]}" if place else message


def _require_sound(found: RecordFile, origin: str) -> None:
    """Refuse what no type excludes: no case, a time that is none, a name that two cases have."""
    if not found.cases:
        raise ResultsError(f"{origin}: a run record without cases: nothing was measured; remove the file")
    parts = [(f"parts[{i}].created", part.created) for i, part in enumerate(found.parts) if part.created]
    times = [("created", found.created), *([("committed", found.committed)] if found.committed else []), *parts]
    for place, text in times:
        if not _is_time(text):
            raise ResultsError(f"{origin}: damaged run record ({place}: {text!r:.40} is no time of ISO 8601)")
    _require_numbers(found.software, origin)
    seen: dict[str, int] = {}
    for index, case in enumerate(found.cases):
        if seen.setdefault(case.name, index) != index:
            reason = f"cases[{index}].name: {case.name!r:.80} is the name of cases[{seen[case.name]}] already"
            raise ResultsError(f"{origin}: damaged run record ({reason})")
        _require_numbers([case.workload, case.configuration], f"{origin}: cases[{index}]")
        for name, counter in case.profile.values.items():
            if counter.value is None and counter.reason is None:
                reason = f"cases[{index}].profile.values[{name!r:.40}]: neither a value nor a reason"
                raise ResultsError(f"{origin}: damaged run record ({reason})")


def _require_numbers(value: object, origin: str) -> None:
    """Refuse integers beyond 64 bits, which not every writer of JSON can write again."""
    if type(value) is int:
        if not -(2**63) <= value < 2**64:
            raise ResultsError(f"{origin}: damaged run record (an integer beyond 64 bits)")
    elif isinstance(value, dict):
        for one in cast("dict[str, object]", value).values():
            _require_numbers(one, origin)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            _require_numbers(one, origin)


def _is_time(text: str) -> bool:
    try:
        return 1970 <= datetime.fromisoformat(text).year < 9999
    except ValueError:
        return False


SHORTEST, LONGEST = 1e-12, 1e7  # seconds: light crosses a third of a millimetre; four months
_FASTEST_CLOCK = 1e5  # MHz
_MOST_BYTES, _MOST_FLOPS = 10**18, 10**24
# By quantity of `Evidence.spans`, in the units given there; none of the others is below zero either.
_SPANS = {
    "sm_clock": 1e11, "memory_clock": 1e11, "power": 1e5, "power_average": 1e5, "temperature": 1e3, "utilization": 1.01,
}  # fmt: skip
_COLDEST, _MOST = -273.15, 1e13


def impossible(case: CaseFile, one: MeasurementFile) -> str | None:
    """Return why the measurement cannot be believed, as one reason; None where all of its values are possible."""
    for group in one.processes:
        if group.counts:
            reason = impossible_times(min(group.counts) * group.unit, max(group.counts) * group.unit)
            if reason:
                return reason
    return impossible_beside_times(case, one)


def impossible_times(least: float, most: float) -> str | None:
    """Return why times from `least` to `most` seconds cannot be believed; None where they can."""
    if SHORTEST <= least <= most <= LONGEST:
        return None
    if not least >= SHORTEST:
        return f"a time of {least:g} s; none is below {SHORTEST:g} s"
    return f"a time of {most:g} s; none is above {LONGEST:g} s"


def impossible_beside_times(case: CaseFile, one: MeasurementFile) -> str | None:
    """Return why a value other than the times cannot be believed; None where all can."""
    for clocks in one.clocks:
        if clocks and not 0 <= min(clocks) <= max(clocks) <= _FASTEST_CLOCK:
            return f"a clock from {min(clocks):g} to {max(clocks):g} MHz; possible is 0 to {_FASTEST_CLOCK:g}"
    if not 0 <= case.bytes <= _MOST_BYTES:
        return f"{case.bytes} bytes; possible is 0 to {_MOST_BYTES:g}"
    if case.flops is not None and not 0 <= case.flops <= _MOST_FLOPS:
        return f"{count_text(case.flops, 'operation')}; possible is 0 to {_MOST_FLOPS:g}"
    for evidence in one.evidence:
        reason = _impossible_evidence(evidence)
        if reason:
            return reason
    return _impossible_energy(one.energy) if one.energy else None


def _impossible_evidence(evidence: EvidenceFile) -> str | None:
    if not 0 <= evidence.seconds <= LONGEST:
        return f"evidence of {evidence.seconds:g} s; possible is 0 to {LONGEST:g}"
    for name, (low, middle, high) in evidence.spans.items():
        if not (_COLDEST if name == "temperature" else 0) <= low <= middle <= high <= _SPANS.get(name, _MOST):
            return f"evidence with {name} of {low:g}, {middle:g}, {high:g}, which is impossible"
    for name, share in evidence.reasons.items():
        if not 0 <= share <= 1.01:
            return f"evidence with a share of {share:g} for {name!r:.40}; possible is 0 to 1"
    for name, seconds in evidence.throttled.items():
        if not 0 <= seconds <= LONGEST:
            return f"evidence with {seconds:g} s of throttling by {name!r:.40}; possible is 0 to {LONGEST:g}"
    return None


def _impossible_energy(energy: EnergyFile) -> str | None:
    for name, value in (("energy", energy.joules), ("uncertainty", energy.uncertainty), ("window", energy.window)):
        if value is not None and not 0 <= value <= _MOST:
            return f"an {name} of {value:g}; possible is 0 to {_MOST:g}"
    return None
