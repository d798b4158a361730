"""Schema of a run record: the fields of its file, the check that holds files to it, and possible values.

A record is one JSON object (stored compressed, see `store/`):

    schema        1; a newer one is refused
    created       UTC time the run began, ISO 8601
    commit        full hash of the measured sources, or null;  dirty: whether they had uncommitted changes
    committed     UTC time of the commit, ISO 8601; absent where it is not known
    guessed       names of fields that the source of an imported record does not have, such as "created", so that their
                  values are guesses; absent without guesses. A record with a guessed time enters no trend
    backend       name of the backend;  catalogue: "built-in" or the folder
    machine       id (folder name), host facts, device facts (name, uuid, sm_count, l2_bytes, memory_bytes, ...);
                  what limits every rate: memory_clock and highest_sm_clock in hertz, memory_bus_bits, fp32_lanes per SM
    software      package and toolkit versions
    protocol      version and settings of the measuring protocol: what a series must share to be compared
    complete      false when the run was cut short (Ctrl-C); what was measured until then is kept
    duration      seconds the whole run took; of a merged one those of its longest part
    tuning        {asked: "tuned" or "untuned", store, choices: {case: {configuration, by, tuned_at, created}}, stale:
                  {case: reason}, unused: why the store has no choice}; empty where no store was used
    monitor       one entry per process whose device was watched: {hertz, beats, cpu_share (of one core), longest_beat
                  (seconds), lost}, or {missing}: why nothing was seen
    boards        one entry per GPU {uuid, vbios, power_limit, host, ...}, see `identity`; absent in older records
    parts         of a record merged from parts that were measured side by side, else absent: one entry per part {uuid,
                  created, duration, kernels: those measured there, ceilings left out}; where the parts' uuids differ,
                  machine has none
    spent         wall seconds of the run's stages {compiling, untimed, timed}: compilation ahead, verification before
                  anything is timed, and the processes that time; of a merged record the sum of its parts
    cases         list of cases, at least one:
        name, kernel, variant, family, label, workload, bytes, flops, ceiling, arithmetic
        before         name of the form that replaces this one, which is kept to compare with; absent elsewhere
        board          UUID of the GPU that measured it, in a record of several
        control        name of the record that has its time, where the case did not change and fewer processes measured
                       it, only to see that the time is still so; absent elsewhere
        status         ok | wrong | skipped | crashed | timed out | failed;  reason: why not ok
        configuration  what of the launch may be tuned, as it was launched: {name: value}
        code           `_CodeFile`: sass and source are hashes of the machine code and of what the compiler
                       got, launches those of a call, plan every launch in short
        verification   list of {seed, output, passed, compared, of, where, max_error, max_relative, norm_error, place,
                       actual, expected, tolerance, error}; of a timed launch that was wrong `metric` and `sample`, too;
                       of one that is carried over `carried` (when it was verified) and `carried_from` (the record);
                       of one of the same bits `check`, `same`, `against`, `launches`, `ulps`, `cause` and `left_out`
        peers          by name of a peer what `peer.PeerFacts` lists: library, version, form, kind, calls, launches,
                       enqueued, breaks, poor, work, precision; absent where no peer was tried, and in records older
                       than 0.3
        measurements   list of {metric, subject, valid, reason, throttled, notes, processes, clocks, evidence, energy}:
                       `processes` are groups {"unit": seconds per count, "counts": [...]} of samples
                       rounded to four significant digits;
                       `clocks` are lists of SM clocks in MHz;
                       `evidence` and `energy`, absent where nothing watched the device, are those of `measurement`;
                       of the metric `energy` the samples are joules of a launch, in older records it is in `hot_time`;
                       `boards` has the UUID of the GPU of each process where several measured it
        spent          seconds that worker processes spent on the case, all of them together: {untimed: of those that
                       time nothing, preparing, verifying, kernel, peer:<name>, cpu: of those that time}
        profile        {tool, version, set, clock_control, cache_control, passes, kernels, values: {name: {value, unit,
                       source} or {value: null, unit, reason}}}: what a profiler counted, never a time to compare

Only measured values are stored. Samples are counts of a decimal unit, so that years of records stay small.

`RecordFields` and `CaseFields` list the fields, for the file as for `run_record`; the types that end in `File` are the
file's. Parts that readers use as tables (facts of the machine, code, profiles) keep keys that a newer minor version
added, so that saving a record again loses nothing; elsewhere such keys are passed over. `checked` names the first field
that is damaged (`cases[3].measurements[0].processes[1].unit`).

A file may be of the right form and still hold a time of zero, a negative energy or a clock of a terahertz: `impossible`
names it. Such a measurement is invalid when it is read, with the reason, and keeps its samples, with which nothing is
computed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from prism_bench.errors import ResultsError
from prism_bench.record.measurement import Count, Evidence, Int, MeasurementFile, Name, Named, Text
from prism_bench.units import count_text

SCHEMA = 1
Status = Literal["ok", "wrong", "skipped", "crashed", "timed out", "failed"]

# Tables of JSON whose keys a newer version may add to: the types below list those that readers rely on.
JsonTable = dict[str, Any]

Seconds = Annotated[float, Meta(ge=0, le=1e9)]  # that something took
# JSON has no infinities: records hold them as words.
Number = Int | float | Annotated[str, Meta(pattern=r"^-?(nan|inf)$", max_length=4)] | None

Leaf = int | float | bool | Text | None  # `checked` holds its integers to 64 bits, with a sign or without
Flat = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float | bool | Text | None
Json1 = Flat | list[Flat] | dict[Name, Flat]
Json2 = Flat | list[Json1] | dict[Name, Json1]
Json3 = Flat | list[Json2] | dict[Name, Json2]
Json4 = Flat | list[Json3] | dict[Name, Json3]


@dataclass(frozen=True)
class CaseFields:
    """Fields of a case that its file and `run_record.CaseResult` share."""

    name: Named
    kernel: Named
    family: Name
    label: Name
    workload: JsonTable
    bytes: Int
    flops: Int | None
    status: Status
    variant: Name | None = None
    ceiling: Name | None = None
    arithmetic: Name = "fp32"
    before: Name | None = None
    reason: Text | None = None
    code: JsonTable = field(default_factory=dict[str, Any])
    verification: tuple[JsonTable, ...] = ()
    measurements: Sequence[Any] = ()
    profile: JsonTable = field(default_factory=dict[str, Any])
    configuration: JsonTable = field(default_factory=dict[str, Any])
    peers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spent: Mapping[Name, Seconds] = field(default_factory=dict[str, float])
    board: Named | None = None
    control: Name | None = None


@dataclass(frozen=True)
class CaseFile(CaseFields):
    """A case as its file keeps it."""

    workload: dict[Name, Leaf]
    flops: Int | None = field(default=None, kw_only=True)
    measurements: tuple[MeasurementFile, ...] = ()
    configuration: dict[Name, Leaf] = field(default_factory=dict[str, Leaf])


@dataclass(frozen=True)
class RecordFields:
    """Fields of a record that its file and `run_record.RunRecord` share."""

    created: Name
    backend: Name
    machine: JsonTable
    software: JsonTable
    protocol: JsonTable
    cases: Sequence[CaseFields]
    commit: Name | None = None
    dirty: bool = False
    catalogue: Text = "built-in"
    complete: bool = True
    duration: float = 0.0
    monitor: tuple[JsonTable, ...] = ()
    tuning: JsonTable = field(default_factory=dict[str, Any])
    parts: tuple[JsonTable, ...] = ()
    spent: Mapping[Name, Seconds] = field(default_factory=dict[str, float])
    boards: tuple[JsonTable, ...] = ()
    committed: Name | None = None
    guessed: tuple[Name, ...] = ()


@dataclass(frozen=True)
class RecordFile(RecordFields):
    """A record as its file keeps it."""

    software: dict[Name, Leaf]
    protocol: dict[Name, Json4]
    cases: tuple[CaseFile, ...]
    schema: Annotated[int, Meta(ge=1, le=SCHEMA)] = field(kw_only=True)


class _VerificationFile(Struct, frozen=True, gc=False):
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
    carried: Text | None = None
    carried_from: Text | None = None


class _CodeFile(Struct, frozen=True, gc=False):
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


class _CounterFile(Struct, frozen=True, gc=False):
    """One value of a profiler, or the reason why it is missing."""

    value: float | None
    unit: Text
    source: Text | None = None
    reason: Text | None = None


class _ProfileFile(Struct, frozen=True, gc=False):
    """What a profiler counted."""

    tool: Text = ""
    version: Text | None = None
    set: Text | None = None
    command: Text | None = None
    passes: Count | None = None
    kernels: Count | list[dict[Name, Json1]] | None = None
    values: dict[Name, _CounterFile] = {}


class _PeerFile(Struct, frozen=True, gc=False):
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


class _MachineFile(Struct, frozen=True, gc=False):
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


class _MonitorFile(Struct, frozen=True, gc=False):
    """How well one process's device was watched."""

    hertz: float | None = None
    beats: Count | None = None
    cpu_share: float | None = None
    longest_beat: float | None = None
    lost: list[Text] = []
    missing: Text | None = None


class _TuningFile(Struct, frozen=True, gc=False):
    """By which choices the launches were tuned."""

    asked: Text | None = None
    store: Text | None = None
    choices: dict[Name, dict[Name, Json1]] = {}
    stale: dict[Name, Text] = {}
    unused: Text | None = None


class _PartFile(Struct, frozen=True, gc=False):
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


class _KnownCaseTables(Struct, frozen=True, gc=False):
    """The tables of a case, with the keys that readers rely on."""

    code: _CodeFile
    verification: list[_VerificationFile]
    profile: _ProfileFile
    peers: dict[Name, _PeerFile]


class _KnownTables(Struct, frozen=True, gc=False):
    """The tables of a record, with the keys that readers rely on."""

    machine: _MachineFile
    cases: list[_KnownCaseTables]
    monitor: list[_MonitorFile]
    tuning: _TuningFile
    parts: list[_PartFile]
    boards: list[BoardFile]


class CaseTables(Struct, frozen=True, gc=False):
    """The tables of a case with all of their keys."""

    code: dict[Name, Json3]
    verification: tuple[dict[Name, Json2], ...]
    profile: dict[Name, Json4]
    peers: dict[Name, dict[Name, Json1]]


class RecordTables(Struct, frozen=True, gc=False):
    """The tables of a record with all of their keys."""

    machine: dict[Name, Json3]
    cases: list[CaseTables]
    monitor: tuple[dict[Name, Json2], ...]
    tuning: dict[Name, Json4]
    parts: tuple[dict[Name, Json2], ...]
    boards: tuple[dict[Name, Json1], ...]


_Kind = TypeVar("_Kind")


def checked(source: object, origin: str) -> RecordFile:
    """Return the record in `source`, JSON text or parsed JSON; a ResultsError names `origin` and what is damaged."""
    return checked_with_tables(source, origin)[0]


def checked_with_tables(source: object, origin: str) -> tuple[RecordFile, RecordTables]:
    """Return the record and its checked tables; those inside the record may share values with parsed JSON."""
    record = _decoded(source, RecordFile, origin)
    _require_sound(record, _require(record, _KnownTables, origin), origin)
    return record, _require(record, RecordTables, origin)


def checked_case(plain: object, origin: str) -> tuple[CaseFile, CaseTables]:
    """Return one case of parsed JSON and its checked tables."""
    case = _decoded(plain, CaseFile, origin)
    _require(case, _KnownCaseTables, origin)
    _require_numbers([case.workload, case.configuration], origin)
    return case, _require(case, CaseTables, origin)


def checked_measurement(plain: object, origin: str) -> MeasurementFile:
    """Return one measurement of parsed JSON."""
    return _decoded(plain, MeasurementFile, origin)


def _decoded(source: object, kind: type[_Kind], origin: str) -> _Kind:
    decode: Callable[..., _Kind] = msgspec.json.decode if isinstance(source, bytes | bytearray) else msgspec.convert
    try:
        return decode(source, type=kind)
    except msgspec.ValidationError as error:
        if kind is RecordFile:
            _require_schema(source, origin)
        raise ResultsError(f"{origin}: damaged run record ({_place_first(error)})") from error
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ResultsError(f"{origin}: not a readable run record ({error})") from error


def _require(decoded: CaseFile | RecordFile, kind: type[_Kind], origin: str) -> _Kind:
    """Return the tables of what was decoded as `kind`."""
    try:
        return msgspec.convert(decoded, kind, from_attributes=True)
    except msgspec.ValidationError as error:
        raise ResultsError(f"{origin}: damaged run record ({_place_first(error)})") from error
    except (RecursionError, ValueError) as error:
        raise ResultsError(f"{origin}: not a readable run record ({error})") from error


def _require_schema(source: object, origin: str) -> None:
    """Raise a ResultsError if the source is no run record at all, or has a newer schema."""
    try:
        plain = msgspec.json.decode(source) if isinstance(source, bytes | bytearray) else source
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ResultsError(f"{origin}: not a readable run record ({error})") from error
    if not isinstance(plain, dict) or "schema" not in plain or "cases" not in plain:
        raise ResultsError(f"{origin}: not a run record (no 'schema' and 'cases')")
    if isinstance(plain["schema"], int) and plain["schema"] > SCHEMA:
        raise ResultsError(f"{origin}: schema {plain['schema']} is newer than {SCHEMA}; upgrade prism-bench to read it")


def _place_first(error: Exception) -> str:
    """Put the place before the complaint: `cases[3].bytes: expected int, got str`."""
    message, _, path = str(error).partition(" - at ")
    place = path.strip("`").removeprefix("$").removeprefix(".")
    message = message.replace("`", "")
    return f"{place}: {message[:1].lower()}{message[1:]}" if place else message


def _require_sound(record: RecordFile, tables: _KnownTables, origin: str) -> None:
    """Refuse what no type excludes: a record without cases, a text that is no time, two cases of one name."""
    if not record.cases:
        raise ResultsError(f"{origin}: a run record without cases: nothing was measured; remove the file")
    times = {"created": record.created, "committed": record.committed or None}
    times |= {f"parts[{index}].created": part.created or None for index, part in enumerate(tables.parts)}
    for place, text in times.items():
        if text is not None and not _is_time(text):
            raise ResultsError(f"{origin}: damaged run record ({place}: {text!r:.40} is no time of ISO 8601)")
    _require_numbers(record.software, origin)
    seen: dict[str, int] = {}
    for index, (case, case_tables) in enumerate(zip(record.cases, tables.cases, strict=True)):
        if seen.setdefault(case.name, index) != index:
            reason = f"cases[{index}].name: {case.name!r:.80} is the name of cases[{seen[case.name]}] already"
            raise ResultsError(f"{origin}: damaged run record ({reason})")
        _require_numbers([case.workload, case.configuration], f"{origin}: cases[{index}]")
        for name, counter in case_tables.profile.values.items():
            if counter.value is None and counter.reason is None:
                reason = f"cases[{index}].profile.values[{name!r:.40}]: neither a value nor a reason"
                raise ResultsError(f"{origin}: damaged run record ({reason})")


def _require_numbers(value: object, origin: str) -> None:
    """Refuse integers beyond 64 bits, which not every writer of JSON can write again."""
    if type(value) is int:
        if not -(2**63) <= value < 2**64:
            raise ResultsError(f"{origin}: damaged run record (an integer beyond 64 bits)")
    elif isinstance(value, dict):
        for entry in cast("dict[str, object]", value).values():
            _require_numbers(entry, origin)
    elif isinstance(value, list):
        for entry in cast("list[object]", value):
            _require_numbers(entry, origin)


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


def impossible(case: CaseFile, measurement: MeasurementFile) -> str | None:
    """Return why the measurement cannot be believed, as one reason; None where all of its values are possible."""
    for group in measurement.processes:
        if group.counts:
            reason = impossible_times(min(group.counts) * group.unit, max(group.counts) * group.unit)
            if reason:
                return reason
    return impossible_beside_times(case, measurement)


def impossible_times(least: float, most: float) -> str | None:
    """Return why times from `least` to `most` seconds cannot be believed; None where they can."""
    if SHORTEST <= least <= most <= LONGEST:
        return None
    if not least >= SHORTEST:
        return f"a time of {least:g} s; none is below {SHORTEST:g} s"
    return f"a time of {most:g} s; none is above {LONGEST:g} s"


def impossible_beside_times(case: CaseFile, measurement: MeasurementFile) -> str | None:
    """Return why a value other than the times cannot be believed; None where all can."""
    for clocks in measurement.clocks:
        if clocks and not 0 <= min(clocks) <= max(clocks) <= _FASTEST_CLOCK:
            return f"a clock from {min(clocks):g} to {max(clocks):g} MHz; possible is 0 to {_FASTEST_CLOCK:g}"
    if not 0 <= case.bytes <= _MOST_BYTES:
        return f"{case.bytes} bytes; possible is 0 to {_MOST_BYTES:g}"
    if case.flops is not None and not 0 <= case.flops <= _MOST_FLOPS:
        return f"{count_text(case.flops, 'operation')}; possible is 0 to {_MOST_FLOPS:g}"
    for evidence in measurement.evidence:
        reason = _impossible_evidence(evidence)
        if reason:
            return reason
    if (energy := measurement.energy) is None:
        return None
    for name in ("joules", "uncertainty", "window", "idle_power", "net_joules", "net_uncertainty", "step"):
        value = getattr(energy, name)
        if value is not None and not 0 <= value <= _MOST:
            return f"an energy with {name} of {value:g}; possible is 0 to {_MOST:g}"
    return None


def _impossible_evidence(evidence: Evidence) -> str | None:
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
