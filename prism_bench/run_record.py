"""A run record: everything one run measured on one machine at one commit, and its schema.

A record is one JSON object (stored compressed, see `store/`):

    schema        1; a newer one is refused
    created       UTC time the run began, ISO 8601
    commit        full hash of the measured sources, or null;  dirty: whether they had uncommitted changes
    backend       name of the backend;  catalogue: "built-in" or the folder
    machine       id (folder name), host facts, device facts (name, uuid, sm_count, l2_bytes, memory_bytes, driver, ...)
    software      package and toolkit versions
    protocol      version and settings of the measuring protocol: what a series must share to be compared
    complete      false when the run was cut short (Ctrl-C); what was measured until then is kept
    duration      seconds the whole run took; of a merged one those of its longest part
    tuning        {asked: "tuned" or "untuned", store, choices: {case: {configuration, by, tuned_at, created}}, stale:
                  {case: reason}, unused: why the store says nothing}; empty where nobody was asked
    monitor       one entry per process whose device was watched: {hertz, beats, cpu_share (of one core), longest_beat
                  (seconds), lost}, or {missing}: why nothing was seen
    parts         of a record merged from parts that were measured side by side, else absent: one entry per part {uuid,
                  created, duration, kernels: those measured there, ceilings left out}; where the parts' uuids differ,
                  machine has none
    cases         list of cases, at least one:
        name, kernel, variant, family, label, workload, bytes, flops, ceiling, arithmetic
        status         ok | wrong | skipped | crashed | timed out | failed;  reason: why not ok
        configuration  what of the launch may be tuned, as it was launched: {name: value}
        code           sass (hash of the machine code), registers, spill_bytes, shared_bytes, launches per call,
                       plan (every launch in short)
        verification   list of {seed, output, passed, compared, of, where, max_error, max_relative, norm_error, place,
                       actual, expected, tolerance, error}
        measurements   list of {metric, subject, valid, reason, throttled, notes, processes, clocks, evidence, energy}:
                       `processes` are groups {"unit": seconds per count, "counts": [...]} of samples
                       rounded to four significant digits;
                       `clocks` are lists of SM clocks in MHz;
                       `evidence` and `energy`, absent where nothing watched the device, are those of `evidence.py`

        profile        {tool, version, set, clock_control, cache_control, passes, kernels, values: {name: {value, unit,
                       source} or {value: null, unit, reason}}}: what a profiler counted, never a time to compare

Only measured values are stored. Samples are counts of a decimal unit, so that years of records stay small.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prism_bench.errors import ResultsError
from prism_bench.evidence import energy_of, evidence_of, plain_energy, plain_evidence
from prism_bench.measurement import Measurement

SCHEMA = 1
IMPORTED = "imported"  # family and label of a case that another tool measured
STATUSES = ("ok", "wrong", "skipped", "crashed", "timed out", "failed")


@dataclass(frozen=True)
class CaseResult:
    """What a run found out about one case; `measurements` is empty unless the status is ok."""

    name: str
    kernel: str
    family: str
    label: str
    workload: dict
    bytes: int
    flops: int | None
    status: str
    variant: str | None = None
    ceiling: str | None = None
    arithmetic: str = "fp32"
    reason: str | None = None
    code: dict = field(default_factory=dict)
    verification: tuple[dict, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    profile: dict = field(default_factory=dict)
    configuration: dict = field(default_factory=dict)

    @property
    def workload_text(self) -> str:
        """The axes as a case's name writes them."""
        return ",".join(f"{axis}={value}" for axis, value in self.workload.items())

    @property
    def is_edge(self) -> bool:
        """Whether it was verified and is never timed. A golden case may share its workload with a timed one: what has
        times is no edge.
        """
        return self.label in ("edge", "golden") and not self.measurements

    def measurement(self, metric: str, subject: str = "kernel") -> Measurement | None:
        """The measurement of `metric` of `subject`, or None."""
        for one in self.measurements:
            if (one.metric, one.subject) == (metric, subject):
                return one
        return None


@dataclass(frozen=True)
class RunRecord:
    """See the module's docstring for every field."""

    created: str
    backend: str
    machine: dict
    software: dict
    protocol: dict
    cases: tuple[CaseResult, ...]
    commit: str | None = None
    dirty: bool = False
    catalogue: str = "built-in"
    complete: bool = True
    duration: float = 0.0
    monitor: tuple[dict, ...] = ()
    tuning: dict = field(default_factory=dict)
    parts: tuple[dict, ...] = ()

    @property
    def uuids(self) -> tuple[str, ...]:
        """The devices behind it, in the order of their UUIDs."""
        return uuids_of(self.machine, self.parts)

    def unit_of(self, kernel: str) -> str | None:
        """The UUID of the one device that measured the kernel; None where it is unknown, or a ceiling of several."""
        if self.machine.get("uuid"):
            return self.machine["uuid"]
        return next((part.get("uuid") for part in self.parts if kernel in part.get("kernels", ())), None)

    @property
    def imported(self) -> bool:
        """Whether another tool measured all of it: nothing was verified here, and nothing was promised for it."""
        return bool(self.cases) and all(case.family == IMPORTED for case in self.cases)

    def case(self, name: str) -> CaseResult | None:
        """The result of the case called `name`, or None."""
        return next((case for case in self.cases if case.name == name), None)


def uuids_of(machine: Mapping, parts: Iterable[Mapping]) -> tuple[str, ...]:
    """The UUIDs of all devices that measured a record of this machine and these parts, sorted; those that are known."""
    found = {machine.get("uuid"), *(part.get("uuid") for part in parts)}
    return tuple(sorted(str(uuid) for uuid in found if uuid))


def encode(record: RunRecord) -> dict:
    """The record as plain JSON values."""
    plain = {key: value for key, value in vars(record).items() if key not in ("cases", "parts")}
    plain |= {"parts": list(record.parts)} if record.parts else {}
    cases = [encode_case(case) for case in record.cases]
    return {"schema": SCHEMA, **plain, "monitor": list(record.monitor), "cases": cases}


def encode_case(case: CaseResult) -> dict:
    """One case as plain JSON values."""
    plain = {key: value for key, value in vars(case).items() if key not in ("measurements", "verification")}
    measurements = [encode_measurement(one) for one in case.measurements]
    verification = [{key: _finite(value) for key, value in entry.items()} for entry in case.verification]
    return {**plain, "verification": verification, "measurements": measurements}


def _finite(value):
    """JSON has no NaN and no infinity: those become the words `nan` and `inf`."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def encode_measurement(measurement: Measurement) -> dict:
    """The measurement as plain JSON values; samples keep four significant digits."""
    plain = {key: value for key, value in vars(measurement).items() if key not in ("evidence", "energy")}
    plain["processes"] = [_pack(process) for process in measurement.processes]
    plain["clocks"] = [[round(clock / 1e6) for clock in process] for process in measurement.clocks]
    watched = {
        "evidence": [plain_evidence(one) for one in measurement.evidence],
        "energy": plain_energy(measurement.energy),
    }
    return plain | {key: value for key, value in watched.items() if value}


def _pack(samples):
    """Samples as integer counts of one decimal unit that leaves the smallest at least four digits."""
    positive = [sample for sample in samples if sample > 0]
    exponent = math.floor(math.log10(min(positive))) - 3 if positive else 0
    unit = float(f"1e{exponent}")
    return {"unit": unit, "counts": [round(sample / unit) for sample in samples]}


def decode(data: object, origin: str) -> RunRecord:
    """The record that `data` (parsed JSON) holds; a ResultsError naming `origin` where it holds none."""
    require_schema(data, origin)
    try:
        known = RunRecord.__dataclass_fields__
        fields = {key: _of_kind(key, value, _KINDS) for key, value in data.items() if key in known}
        cases = tuple(decode_case(case) for case in data["cases"])
        lists = {key: tuple(data.get(key, ())) for key in ("monitor", "parts")}
        return RunRecord(**{**fields, **lists, "cases": cases})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ResultsError(f"{origin}: damaged run record ({type(error).__name__}: {error})") from error


def require_schema(data: object, origin: str) -> None:
    """Refuse, naming `origin`, what is no run record, has a newer schema or no case."""
    if not isinstance(data, dict) or "schema" not in data or "cases" not in data:
        raise ResultsError(f"{origin}: not a run record (no 'schema' and 'cases')")
    if not isinstance(data["schema"], int) or data["schema"] > SCHEMA:
        raise ResultsError(f"{origin}: schema {data['schema']} is newer than {SCHEMA}; upgrade prism-bench to read it")
    if data["cases"] == []:
        raise ResultsError(f"{origin}: a run record without cases: nothing was measured; remove the file")


# What a field of a record, of a case or of a measurement must be where a reader relies on it.
_KINDS = {
    "created": str, "backend": str, "catalogue": str, "machine": dict, "software": dict, "protocol": dict,
    "cases": list, "monitor": list, "parts": list, "tuning": dict,
}  # fmt: skip
_CASE_KINDS = {
    "name": str, "kernel": str, "family": str, "label": str, "workload": dict, "bytes": int, "code": dict,
    "configuration": dict,
}  # fmt: skip
_MEASUREMENT_KINDS = {"metric": str, "subject": str, "processes": list, "clocks": list, "evidence": list}


def _of_kind(key, value, kinds):
    if not isinstance(value, kinds.get(key, object)):
        raise TypeError(f"'{key}' is {value!r:.40}")
    return value


def decode_case(plain: dict) -> CaseResult:
    """The inverse of `encode_case`."""
    if plain["status"] not in STATUSES:
        raise ValueError(f"status '{plain['status']}' is none of {', '.join(STATUSES)}")
    known = CaseResult.__dataclass_fields__
    fields = {key: _of_kind(key, value, _CASE_KINDS) for key, value in plain.items() if key in known}
    fields["measurements"] = tuple(decode_measurement(one) for one in plain.get("measurements", ()))
    fields["verification"] = tuple(plain.get("verification", ()))
    return CaseResult(**fields)


def decode_measurement(plain: dict) -> Measurement:
    """The inverse of `encode_measurement`."""
    known = Measurement.__dataclass_fields__
    fields = {key: _of_kind(key, value, _MEASUREMENT_KINDS) for key, value in plain.items() if key in known}
    groups = plain["processes"]
    fields["processes"] = tuple(tuple(count * group["unit"] for count in group["counts"]) for group in groups)
    fields["clocks"] = tuple(tuple(mhz * 1e6 for mhz in process) for process in plain.get("clocks", ()))
    fields["notes"] = tuple(plain.get("notes", ()))
    fields["evidence"] = tuple(evidence_of(one) for one in plain.get("evidence", ()))
    fields["energy"] = energy_of(plain.get("energy"))
    return Measurement(**fields)
