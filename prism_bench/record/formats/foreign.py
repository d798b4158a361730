"""Shared parts of the readers of other tools' results: checked JSON, and records made of few facts."""

import json
import re
from collections import Counter
from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, cast

from prism_bench.errors import ResultsError
from prism_bench.io.documents import content_of, json_text
from prism_bench.io.files import confined, write_atomically
from prism_bench.record.identity import slug, timestamp
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import IMPORTED, CaseResult, RunRecord, decode_case, encode_case
from prism_bench.record.schema import LONGEST, SHORTEST
from prism_bench.units import count_text

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|nan)", re.IGNORECASE)
ODD = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)  # of odd content
TIME, _MACHINE = "created", "machine"  # facts that a file may lack
COMMIT = re.compile(r"[0-9a-f]{7,64}")  # a hash that other tools may write for a commit, among other words
SECONDS = {"s": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Imported:
    """The `records` that a file or folder held, and what was `left_out` of them, in words with the place."""

    records: tuple[RunRecord, ...]
    left_out: tuple[str, ...] = ()


def read_json(path: Path) -> object:
    """Return the JSON in the file, plain or gzip, with `NaN` and `Infinity`, as asv writes it.

    Raise a ResultsError for other text, and for a file beyond the limits of `content_of`.
    """
    try:
        return json.loads(content_of(path, "readable JSON"), object_pairs_hook=_distinct)
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: not readable JSON ({error})") from error


def json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file; raise a ResultsError for other content."""
    plain = read_json(path)
    if not isinstance(plain, dict):
        raise ResultsError(f"{path}: not a JSON object")
    return cast("dict[str, Any]", plain)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the object of these fields; refuse a repeated one, which has two values."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the field '{twice:.40}' is there twice in one object")
    return fields


def write_json(plain: Mapping[str, object], path: Path) -> Path:
    """Write the object as compact JSON, whole or not at all, and return the path; a ResultsError where that fails."""
    try:
        write_atomically(path, f"{json_text(plain)}\n".encode())
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error
    return path


def number(value: object, place: str) -> float:
    """Return a number, or one written as text as C++ writes it; a ResultsError names the place of anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    raise ResultsError(f"{place} is {value!r:.40}, not a number")


def within(folder: Path, name: object, place: str) -> Path:
    """Return the file `name` in the folder or below; a ResultsError where the name leads out of it."""
    if not isinstance(name, str) or not name or Path(name).is_absolute():
        raise ResultsError(f"{place} is {name!r:.80}, not a name in the folder {folder}")
    try:
        return confined(folder, name)
    except ResultsError as error:
        raise ResultsError(f"{place}: {error}") from None


def field(plain: object, name: str, kind: type | tuple[type, ...], place: str) -> Any:
    """Return the field of a JSON object; a ResultsError names the place where it is missing or of another kind."""
    if not isinstance(plain, dict) or name not in plain:
        raise ResultsError(f"{place}: '{name}' is missing")
    value: object = plain[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ResultsError(f"{place}: '{name}' is {value!r:.40}")
    return value


def record(
    backend: str,
    machine: str | None,
    created: datetime | Path,
    cases: Iterable[CaseResult],
    commit: str | None = None,
    **facts: Any,
) -> RunRecord:
    """Return a record of another tool's results; `facts` are facts of the machine, `software` and `version`.

    Where the results have no time, `created` is their file, whose last change is the guess; a `machine` of None is not
    known. `committed`, a datetime among the facts, is when the commit was made, `dirty` whether the sources had
    changes since.
    """
    software, version, committed = facts.pop("software", {}), facts.pop("version"), facts.pop("committed", None)
    dirty = facts.pop("dirty", False)
    guessed = [name for name, is_guess in ((TIME, isinstance(created, Path)), (_MACHINE, machine is None)) if is_guess]
    if isinstance(created, Path):
        created = datetime.fromtimestamp(created.stat().st_mtime, UTC)
    return RunRecord(
        created=timestamp(created),
        backend=backend,
        machine={"id": slug(machine or "unknown"), **facts},
        software=software,
        protocol={"version": f"{backend} {version}"},
        cases=tuple(cases),
        commit=commit,
        catalogue=backend,
        dirty=dirty,
        committed=timestamp(committed) if committed else None,
        guessed=tuple(guessed),
    )


def case(kernel: str, axes: Mapping[str, object], measurements: Iterable[Measurement], **changes: Any) -> CaseResult:
    """Return a case of a foreign benchmark, `kernel[axis=value,...]`, whose bytes and operations are unknown."""
    inside = ",".join(f"{axis}={value}" for axis, value in axes.items())
    fields = {
        "name": f"{kernel}[{inside}]",
        "kernel": kernel,
        "family": IMPORTED,
        "label": IMPORTED,
        "workload": dict(axes),
        "bytes": 0,
        "flops": None,
        "status": "ok",
        "measurements": tuple(measurements),
    }
    return CaseResult(**{**fields, **changes})


def catalogue_case(name: str, measurements: Iterable[Measurement], **changes: Any) -> CaseResult:
    """Return a case of the catalogue, whose name contains its variant and axes: `softmax:fast[rows=8]`."""
    kernel, _, inside = name.partition("[")
    axes = dict(part.split("=", 1) for part in inside.rstrip("]").split(",") if "=" in part)
    kernel, _, variant = kernel.partition(":")
    return case(kernel, axes, measurements, name=name, variant=variant or None, **changes)


def joined(results: Sequence[CaseResult]) -> CaseResult:
    """Return one case of its results in several metrics; it has failed only if all of them have."""
    best = next((result for result in results if result.status == "ok"), results[0])
    return replace(best, measurements=tuple(time for result in results for time in result.measurements))


def trusted(result: CaseResult, metrics: Container[str]) -> tuple[list[Measurement], str | None]:
    """Return what another tool may be given of a case: the kernel's valid times, else why it has none.

    A case that was only verified has neither.
    """
    kernels = [time for time in result.measurements if time.subject == "kernel" and time.metric in metrics]
    times = [time for time in kernels if time.valid and time.samples]
    reasons = [time.reason for time in kernels if time.reason]
    if times or (result.status == "ok" and not reasons):
        return times, None
    return [], result.reason or next(iter(reasons), result.status)


def axes_of(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return the axes by name; a name that comes again gets its number: `k`, `k_2`."""
    axes: dict[str, object] = {}
    for name, value in pairs:
        free = (name if number == 1 else f"{name}_{number}" for number in count(1))
        axes[next(text for text in free if text not in axes)] = value
    return axes


def timing(metric: str, samples: Iterable[float], notes: tuple[str, ...] = ()) -> Measurement:
    """Return a measurement of one process; invalid, and with the reason, where a sample is no possible time."""
    numbers = tuple(float(sample) for sample in samples)
    sound = tuple(sample for sample in numbers if SHORTEST <= sample <= LONGEST)
    if len(sound) == len(numbers):
        return Measurement(metric, "kernel", (numbers,) if numbers else (), notes=notes)
    reason = f"{len(numbers) - len(sound)} of {count_text(len(numbers), 'sample')} are no times above zero"
    return Measurement(metric, "kernel", (sound,) if sound else (), valid=False, reason=reason, notes=notes)


def single(metric: str, seconds: float, origin: str) -> Measurement:
    """Return a measurement of the only number that a file has of it, with a note of its `origin`."""
    return timing(metric, [seconds], (f"one number: {origin}",))


def runs_of(statistics: Mapping[str, object], samples: str, place: str) -> Measurement:
    """Return wall times: the samples under that name, else their median or, in older files, their mean; in seconds."""
    if statistics.get(samples):
        runs: list[object] = field(statistics, samples, list, place)
        return timing("wall_time", [number(run, f"{place}: {samples}") for run in runs])
    name = next((name for name in ("median", "mean") if statistics.get(name) is not None), samples)
    return single("wall_time", field(statistics, name, (int, float), place), f"the {name}")


class ImportedRows:
    """Rows of one file as cases. A row that cannot be read, or that no reader of records would take, costs itself.

    `left_out` has the reason for each row that is no case, with its place. `owner` sets the rows of several records of
    one file apart.
    """

    def __init__(self, path: Path) -> None:
        self.left_out: list[str] = []
        self._path = path
        self._rows: dict[str, dict[str, list[tuple[CaseResult, object]]]] = {}

    @contextmanager
    def row(self, place: str) -> Generator[None]:
        """Leave out the row that the body reads, with its place, where it is not as its tool writes it."""
        try:
            yield
        except ResultsError as error:
            self.left_out.append(str(error))
        except ODD as error:
            self.left_out.append(f"{place}: not as its tool writes it ({type(error).__name__}: {error})")

    def add(self, row: CaseResult, key: object = None, owner: str = "") -> None:
        """Add a case; `key` sets it apart in its source from another case of its name, None where nothing does."""
        with self.row(f"{self._path}: {row.name:.80}"):
            self._rows.setdefault(owner, {}).setdefault(row.name, []).append((_sound(row), key))

    def possible(self, samples: Sequence[float], what: str, place: str) -> Sequence[float]:
        """Return the samples that are possible times, where there is one; the others are left out, with their count."""
        sound = [sample for sample in samples if SHORTEST <= sample <= LONGEST]
        if not sound or len(sound) == len(samples):
            return samples
        count = f"{len(samples) - len(sound)} of {len(samples)} {what}"
        self.left_out.append(f"{place}: {count} are left out: no time above zero")
        return sound

    @property
    def owners(self) -> list[str]:
        """The owners of which there are rows."""
        return list(self._rows)

    def cases(self, owner: str = "") -> list[CaseResult]:
        """Return the owner's cases; those of one name with an axis `instance` where the source sets them apart."""
        kept: list[CaseResult] = []
        for name, rows in self._rows.get(owner, {}).items():
            keys = {key for _, key in rows if key is not None}
            if len(rows) == 1:
                kept.append(rows[0][0])
            elif len(keys) == len(rows):
                kept += [
                    replace(
                        row,
                        name=f"{row.name[:-1]}{',' if row.workload else ''}instance={number}]",
                        workload=axes_of([*row.workload.items(), ("instance", number)]),
                    )
                    for number, (row, _) in enumerate(rows, 1)
                ]
            else:
                self.left_out.append(
                    f"{self._path}: {name:.80} is there {len(rows)} times, and nothing in the file sets them apart; "
                    "none of them is imported"
                )
        return kept


def _sound(row: CaseResult) -> CaseResult:
    """Return the case as far as readers of records accept it; raise a ResultsError if they would refuse all of it.

    A case is `ok` by what it has: its valid times, or that its tool verified it.
    """
    read = decode_case(json.loads(json_text(encode_case(row))))
    pairs = list(zip(row.measurements, read.measurements, strict=True))
    valid = tuple(kept for kept, back in pairs if back.valid and back.samples)
    invalid = [f"{back.metric}: {back.reason or 'no sample'}" for _, back in pairs if not (back.valid and back.samples)]
    if row.status != "ok":
        return replace(row, measurements=())
    if not valid and not row.verification:
        return replace(row, status="failed", reason="; ".join(invalid) or "the file has no time of it", measurements=())
    lost = tuple(f"left out: {reason}" for reason in invalid)
    return replace(row, measurements=tuple(replace(kept, notes=(*kept.notes, *lost)) for kept in valid))


def moment(text: str, place: str) -> datetime:
    """Return the time in ISO 8601; one without a zone is taken for UTC."""
    try:
        time = datetime.fromisoformat(re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text))
    except ValueError:
        raise ResultsError(f"{place}: '{text:.40}' is no time of ISO 8601, such as 2026-11-20T10:00:00+01:00") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


@dataclass(frozen=True)
class StatedFacts:
    """What the user states about results whose file does not: when, of which commit and where they were measured."""

    created: datetime | None = None
    commit: str | None = None
    machine: str | None = None

    def stated(self, record: RunRecord, place: str) -> RunRecord:
        """Return the record with these facts; a ResultsError where the file already has the fact.

        A machine that is named after its GPU has no name in the file.
        """
        by_device = record.machine["id"] == slug(str(record.machine.get("device")))
        machine = None if by_device or _MACHINE in record.guessed else record.machine["id"]
        for option, value, known in (
            ("--created", self.created, None if TIME in record.guessed else record.created),
            ("--commit", self.commit, record.commit),
            ("--machine", self.machine, machine),
        ):
            if value is not None and known is not None:
                raise ResultsError(f"{place}: the file has its own: {known}; import it without {option}")
        guessed = tuple(name for name in record.guessed if getattr(self, name) is None)
        changes: dict[str, Any] = {"commit": self.commit or record.commit, "guessed": guessed}
        if self.created:
            changes["created"] = timestamp(self.created)
        if self.machine:
            changes["machine"] = {**record.machine, "id": slug(self.machine)}
        return replace(record, **changes)
