"""The schema of a run record's file: what every field must be. `record_check` holds files to it.

Keys that are not listed here are passed over: a newer minor version wrote them. Values of the right type outside their
physical range are the business of `record_ranges`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

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

Leaf = int | float | bool | Text | None  # `record_check` holds its integers to 64 bits, with a sign or without
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
    """See `evidence.Evidence`."""

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
    """See `evidence.Energy`."""

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
    """One board; see `boards`."""

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
