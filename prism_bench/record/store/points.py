"""One record as points: per measurement its median, whether it is trusted, and what it may be compared with.

The medians are read straight from the checked file. They are those of `Measurement.median`, with seven digits, in a
fifth of the time that it takes to build its objects; a trend may need a thousand records.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from prism_bench.io.documents import json_line
from prism_bench.record.identity import BoardTable, Owner, environment_of, uuids_of
from prism_bench.record.schema import (
    CaseFile,
    CodeFile,
    MeasurementFile,
    RecordFile,
    impossible_beside_times,
    impossible_times,
)
from prism_bench.record.store.decimals import shown

# Columns of text, which repeat, and of numbers with their types. `value` is the median in seconds; `code` sets the
# case's machine code and launches apart from others, `build` its language, compiler and source; `doubt` is why the
# point cannot be trusted, empty if it can; `board` is the UUID of the GPU, empty where it is unknown or several are
# behind the point.
WORDS = ("case", "metric", "subject", "code", "build", "doubt", "board")
NUMBERS = {"value": "f8", "clock": "f4", "samples": "i4", "throttled": "i4"}
Columns = Mapping[str, Sequence[Any]]  # text or numbers, by column
_Row = tuple[str, str, str, str, str, str, str, float, float, int, int]
Anchors = dict[str, dict[str, dict[str, float]]]
_MOST, _HIGHEST_CLOCK = 2**31 - 1, 1e30  # what the types of the columns hold


@dataclass(frozen=True)
class Facts:
    """Facts of a record: whose, when and under which circumstances its points were measured.

    `boards` are the record's entries of its GPUs (see `record.identity`). `anchors` are what several GPUs measured for
    themselves, of which the points have what they have in common: {UUID: {case: {metric: median in seconds}}}.
    `committed` is the commit's time in ISO 8601; `guessed` names the facts that an imported file does not have.
    """

    file: str
    machine: str
    backend: str
    created: str
    commit: str | None
    dirty: bool
    complete: bool
    device: str
    software: dict[str, str]
    protocol: dict[str, Any]
    boards: list[BoardTable] = field(default_factory=list[BoardTable])
    anchors: Anchors = field(default_factory=Anchors)
    committed: str | None = None
    guessed: list[str] = field(default_factory=list[str])

    @property
    def owner(self) -> Owner:
        """Machine, backend and environment: records of one owner make series."""
        return self.machine, self.backend, environment_of(self.backend, self.software)

    @property
    def when(self) -> str:
        """The time of its commit; where that is unknown, the time of measuring."""
        return self.committed or self.created


def points_in(record: RecordFile, file: str) -> tuple[Facts, Columns]:
    """Return the facts of a checked record, known as `file`, and its points as columns of equal length.

    Cases and measurements without samples are left out.
    """
    owners = _Owners(record)
    options = " and ".join(f"--{name}" for name in record.guessed)
    guess = f"imported without {options}, and its file does not have it" if options else ""
    rows = [row for case in record.cases for row in _rows(case, owners.of(case), guess)]
    columns: list[list[Any]] = list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in (*WORDS, *NUMBERS)]
    return _facts(record, file), dict(zip((*WORDS, *NUMBERS), columns, strict=True))


def _facts(record: RecordFile, file: str) -> Facts:
    units = uuids_of({"uuid": record.machine.uuid}, [{"uuid": part.uuid} for part in record.parts])
    return Facts(
        file=file,
        machine=record.machine.id,
        backend=record.backend,
        created=utc(record.created),
        commit=record.commit,
        dirty=record.dirty,
        complete=record.complete,
        device="+".join(units) or str(record.machine.device or ""),
        software={name: str(version) for name, version in record.software.items()},
        protocol=record.protocol,
        boards=[one.known() for one in record.boards],
        anchors=_anchors(record),
        committed=utc(record.committed) if record.committed else None,
        guessed=record.guessed,
    )


class _Owners:
    """The board of each case of a record; of a case without one that of its kernel, or of the record."""

    def __init__(self, record: RecordFile) -> None:
        self._uuid = record.machine.uuid
        self._kernels = {kernel: part.uuid for part in record.parts for kernel in part.kernels}

    def of(self, case: CaseFile) -> str:
        """Return its UUID; empty where it is not known, or where several boards measured the case."""
        return case.board or self._uuid or self._kernels.get(case.kernel) or ""


def _anchors(record: RecordFile) -> Anchors:
    """Return the medians that each of several boards has of the cases that all of them measured, trusted ones alone."""
    found: Anchors = {}
    for case in record.cases:
        for one in case.measurements if case.status == "ok" else ():
            own: dict[str, list[float]] = {}
            for board, group in zip(one.boards, one.processes, strict=False):
                if group.counts and one.valid and one.subject == "kernel":
                    own.setdefault(board, []).append(_median(sorted(group.counts)) * group.unit)
            for board, medians in own.items():
                found.setdefault(board, {}).setdefault(case.name, {})[one.metric] = shown(_median(sorted(medians)))
    return found


def utc(text: str) -> str:
    """Return the time in ISO 8601 without a zone, so that times sort as text; without a zone it is UTC."""
    time = datetime.fromisoformat(text)
    return (time.astimezone(UTC) if time.tzinfo else time).replace(tzinfo=None).isoformat(timespec="seconds")


def _rows(case: CaseFile, board: str, guess: str) -> Iterator[_Row]:
    code, build = _code(case.code), _build(case.code)
    for one in case.measurements:
        ordered = [(sorted(group.counts), group.unit) for group in one.processes if group.counts]
        if ordered:
            value = _median(sorted(_median(counts) * unit for counts, unit in ordered))
            yield (
                case.name, one.metric, one.subject, code, build, guess or _doubt(case, one, ordered), board,
                shown(value), _clock(one.clocks),
                min(sum(len(counts) for counts, _ in ordered), _MOST), min(one.throttled, _MOST),
            )  # fmt: skip


def _median(ordered: Sequence[float]) -> float:
    """Return the median of ordered values without the checks of `statistics.median`: there are millions of them."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _clock(processes: Sequence[Sequence[float]]) -> float:
    """Return the mean clock in hertz, 0 where none was read: as good as the median here, ten times as quick."""
    count = sum(map(len, processes))
    mean = sum(map(sum, processes)) / count * 1e6 if count else 0.0
    return mean if abs(mean) < _HIGHEST_CLOCK else 0.0


def _code(code: CodeFile) -> str:
    """Return a text that is the same for equal machine code and launches; empty where the code is not known."""
    return json_line([code.sass, code.launches, code.shared_bytes]) if code.sass else ""


def _build(code: CodeFile) -> str:
    """Return language, compiler and source as JSON; empty where none of them is known."""
    known = [code.language, code.compiler, code.source]
    return json_line(known) if any(known) else ""


def _doubt(case: CaseFile, one: MeasurementFile, ordered: Sequence[tuple[list[int], float]]) -> str:
    """Return why the measurement, with samples `ordered`, is not trusted, as `impossible` does; empty if it is."""
    if case.status != "ok":
        return f"the case is {case.status}: {case.reason or 'the record gives no reason'}"
    if not one.valid:
        return one.reason or "invalid; the record gives no reason"
    for counts, unit in ordered:
        reason = impossible_times(counts[0] * unit, counts[-1] * unit)
        if reason:
            return reason
    return impossible_beside_times(case, one) or ""
