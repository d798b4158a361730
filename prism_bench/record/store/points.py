"""One record as points, and points of many files column by column."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy
from msgspec import convert
from numpy.typing import NDArray

from prism_bench.io.documents import json_line
from prism_bench.record.identity import BoardTable, Owner, environment_of, uuids_of
from prism_bench.record.measurement import MeasurementFile
from prism_bench.record.schema import BoardFile, CaseFile, RecordFile, impossible_beside_times, impossible_times
from prism_bench.spec.metric import CODE

# Times as whole numbers of a decimal unit, as compact as the digits that they have.
#
# A point's value has SHOWN digits at most; medians of its processes and quartiles have those of its unit, and are kept
# as differences from the value.

SHOWN = 7  # digits of a value: samples have four, and a median of medians of an even number of them some more
_FEWEST = 5  # digits that the unit of a point leaves at least
_DECIMALS_MOST = 2**31 - 1


def shown(value: float) -> float:
    """Return the value with SHOWN digits; 0 for what is not finite."""
    short = float(f"{value:.{SHOWN}g}")
    return short if abs(short) < float("inf") else 0.0


def units_of(values: NDArray[Any]) -> NDArray[Any]:
    """Return the exponents of ten of the largest units of which all values, as `shown` returns them, are multiples."""
    known = values != 0
    sizes = numpy.floor(numpy.log10(numpy.abs(values, where=known, out=numpy.ones(len(values)))))
    finest = numpy.where(known, sizes - SHOWN + 1, 0).astype("i4")
    counts = counted(values, finest)
    units = finest.copy()
    for digits in range(SHOWN - 1, _FEWEST - 1, -1):
        step = SHOWN - digits
        units[known & (counts % 10**step == 0)] = finest[known & (counts % 10**step == 0)] + step
    return units.astype("i2")


def counted(values: NDArray[Any], units: NDArray[Any]) -> NDArray[Any]:
    """Return the values as rounded numbers of units."""
    numbers = numpy.rint(numpy.where(units < 0, values * _powers(-units), values / _powers(units)))
    return numpy.clip(numbers, -_DECIMALS_MOST, _DECIMALS_MOST).astype("i4")


def seconds(counts: NDArray[Any], units: NDArray[Any]) -> NDArray[Any]:
    """Return the inverse of `counted`: the number that is nearest to the decimal one."""
    return numpy.where(units < 0, counts / _powers(-units), counts * _powers(units))


def _powers(exponents: NDArray[Any]) -> NDArray[Any]:
    """Return powers of ten, exact up to 22; 1 for negative exponents."""
    return numpy.array([10.0**power for power in range(309)])[numpy.clip(exponents, 0, 308).astype("i4")]


# One record as points: per measurement its median, whether it is trusted, and what it may be compared with.
#
# The medians are read straight from the checked file. They are those of `Measurement.median`, with seven digits, in a
# fifth of the time that it takes to build its objects; a trend may need a thousand records.

# Columns of text, which repeat, and of numbers with their types. `value` is the median in seconds; `code` sets the
# case's machine code and launches apart from others, `build` its language, compiler and source; `doubt` is why the
# point cannot be trusted, empty if it can; `board` is the UUID of the GPU, empty where it is unknown or several are
# behind the point.
WORDS = ("case", "metric", "subject", "code", "build", "doubt", "board")
NUMBERS = {"value": "f8", "clock": "f4", "samples": "i4", "throttled": "i4"}
Columns = Mapping[str, Sequence[Any]]  # text or numbers, by column
_Row = tuple[str, str, str, str, str, str, str, float, float, int, int]
Anchors = dict[str, dict[str, dict[str, float]]]
_LEAST = 1e-12  # of a single value
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

    Cases and measurements without samples are left out. The values of `single_values` come last.
    """
    owners = _Owners(record)
    options = " and ".join(f"--{name}" for name in record.guessed)
    guess = f"imported without {options}, and its file does not have it" if options else ""
    rows = [row for case in record.cases for row in _rows(case, owners.of(case), guess)]
    rows += [
        (case.name, metric, "kernel", *_code_words(case), guess or _bad(case), owners.of(case), shown(value), 0.0, 1, 0)
        for case in record.cases
        for metric, value in single_values(case)
    ]
    columns: list[list[Any]] = list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in (*WORDS, *NUMBERS)]
    return _facts(record, file), dict(zip((*WORDS, *NUMBERS), columns, strict=True))


def _facts(record: RecordFile, file: str) -> Facts:
    units = uuids_of(record.machine, record.parts)
    return Facts(
        file=file,
        machine=record.machine["id"],
        backend=record.backend,
        created=utc(record.created),
        commit=record.commit,
        dirty=record.dirty,
        complete=record.complete,
        device="+".join(units) or str(record.machine.get("device") or ""),
        software={name: str(version) for name, version in record.software.items()},
        protocol=record.protocol,
        boards=[convert(board, BoardFile).known() for board in record.boards],
        anchors=_anchors(record),
        committed=utc(record.committed) if record.committed else None,
        guessed=list(record.guessed),
    )


class _Owners:
    """The board of each case of a record; of a case without one that of its kernel, or of the record."""

    def __init__(self, record: RecordFile) -> None:
        self._uuid = record.machine.get("uuid")
        self._kernels = {kernel: part["uuid"] for part in record.parts for kernel in part["kernels"]}

    def of(self, case: CaseFile) -> str:
        """Return its UUID; empty where it is not known, or where several boards measured the case."""
        return case.board or self._uuid or self._kernels.get(case.kernel) or ""


def _anchors(record: RecordFile) -> Anchors:
    """Return the medians that each of several boards has of the cases that all of them measured, if trusted."""
    anchors: Anchors = {}
    for case in record.cases:
        for measurement in case.measurements if case.status == "ok" else ():
            by_board: dict[str, list[float]] = {}
            for board, group in zip(measurement.boards, measurement.processes, strict=False):
                if group.counts and measurement.valid and measurement.subject == "kernel":
                    by_board.setdefault(board, []).append(_median(sorted(group.counts)) * group.unit)
            for board, medians in by_board.items():
                anchors.setdefault(board, {}).setdefault(case.name, {})[measurement.metric] = shown(
                    _median(sorted(medians))
                )
    return anchors


def utc(text: str) -> str:
    """Return the time in ISO 8601 without a zone, so that times sort as text; without a zone it is UTC."""
    time = datetime.fromisoformat(text)
    return (time.astimezone(UTC) if time.tzinfo else time).replace(tzinfo=None).isoformat(timespec="seconds")


def single_values(case: CaseFile) -> Iterator[tuple[str, float]]:
    """Yield metric and value of what a case with samples has one value of: its code, and the energy of earlier records.

    Zero, and what no compiler or launch takes, is left out: a series is tested by the ratios of its values.
    """
    if any(group.counts for measurement in case.measurements for group in measurement.processes):
        for metric in CODE:
            if (value := case.code.get(metric) or 0) > _LEAST:
                yield metric, float(value)
    of_kernel = [measurement for measurement in case.measurements if measurement.subject == "kernel"]
    if not any(measurement.metric == "energy" for measurement in of_kernel):
        joules = (measurement.energy.joules for measurement in of_kernel if measurement.energy)
        yield from (("energy", value) for value in joules if value and value > _LEAST)


def _code_words(case: CaseFile) -> tuple[str, str]:
    """Return a text that is the same for equal machine code and launches, and one for language, compiler and source."""
    facts = case.code
    code = json_line([facts.get(key) for key in ("sass", "launches", "shared_bytes")]) if facts.get("sass") else ""
    known = [facts.get(key) for key in ("language", "compiler", "source")]
    return code, json_line(known) if any(known) else ""


def _rows(case: CaseFile, board: str, guess: str) -> Iterator[_Row]:
    code, build = _code_words(case)
    for measurement in case.measurements:
        ordered = [(sorted(group.counts), group.unit) for group in measurement.processes if group.counts]
        if ordered:
            value = _median(sorted(_median(counts) * unit for counts, unit in ordered))
            # The mean clock in hertz, 0 without a reading: as good as the median here, ten times as quick.
            readings = sum(map(len, measurement.clocks))
            clock = sum(map(sum, measurement.clocks)) / readings * 1e6 if readings else 0.0
            yield (
                case.name,
                measurement.metric,
                measurement.subject,
                code,
                build,
                guess or _doubt(case, measurement, ordered),
                board,
                shown(value),
                clock if abs(clock) < _HIGHEST_CLOCK else 0.0,
                min(sum(len(counts) for counts, _ in ordered), _MOST),
                min(measurement.throttled, _MOST),
            )


def _median(ordered: Sequence[float]) -> float:
    """Return the median of ordered values without the checks of `statistics.median`: there are millions of them."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _bad(case: CaseFile) -> str:
    """Return why nothing of the case is trusted; empty if it ran well."""
    return "" if case.status == "ok" else f"the case is {case.status}: {case.reason or 'the record gives no reason'}"


def _doubt(case: CaseFile, measurement: MeasurementFile, ordered: Sequence[tuple[list[int], float]]) -> str:
    """Return why the measurement, with samples `ordered`, is not trusted, as `impossible` does; empty if it is."""
    if bad := _bad(case):
        return bad
    if not measurement.valid:
        return measurement.reason or "invalid; the record gives no reason"
    for counts, unit in ordered:
        reason = impossible_times(counts[0] * unit, counts[-1] * unit)
        if reason:
            return reason
    return impossible_beside_times(case, measurement) or ""


# Points of many files, column by column: words as numbers of a vocabulary, one slice of rows for each file.

Column = NDArray[Any]  # of integers or of floats


@dataclass(frozen=True, eq=False)
class PointBlock:
    """Content of one record: its `facts` and columns, or the `problem` that its file has.

    `seal` changes with the file's content, and is empty without a file. `details` are those of `details.py`, where they
    are wanted.
    """

    file: str
    seal: str
    facts: Facts | None
    problem: str | None
    columns: Mapping[str, Column]
    vocabulary: Mapping[str, list[str]]
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def rows(self) -> int:
        return len(self.columns["value"])


def block(file: str, seal: str, facts: Facts | None, columns: Columns, problem: str | None = None) -> PointBlock:
    """Return the block of a file's points, each of its words numbered in the order in which it first comes."""
    numbered: dict[str, Column] = {}
    vocabulary: dict[str, list[str]] = {}
    for word in WORDS:
        texts = columns.get(word, ())
        vocabulary[word] = list(dict.fromkeys(texts))
        place = {text: index for index, text in enumerate(vocabulary[word])}
        numbered[word] = numpy.array([place[text] for text in texts], "i4")
    plain = {name: numpy.array(columns.get(name, ()), kind) for name, kind in NUMBERS.items()}
    return PointBlock(file, seal, facts, problem, numbered | plain, vocabulary)


@dataclass(frozen=True, eq=False)
class PointTable:
    """Points of many records: words as numbers of a vocabulary, and in `record` the place of a point's record."""

    columns: Mapping[str, Column]
    vocabulary: Mapping[str, list[str]]

    @property
    def rows(self) -> int:
        return len(self.columns["record"])

    def rows_with(self, wanted: Mapping[str, Collection[str] | None]) -> Column:
        """Return which rows have one of the texts in each of these words; None allows any."""
        rows = numpy.ones(self.rows, bool)
        for word, texts in wanted.items():
            if texts is not None:
                rows &= numpy.array([text in texts for text in self.vocabulary[word]], bool)[self.columns[word]]
        return rows

    def chosen(self, rows: Column) -> "PointTable":
        """Return the chosen rows, with the same vocabulary."""
        return PointTable({name: column[rows] for name, column in self.columns.items()}, self.vocabulary)

    def texts(self, word: str) -> list[str]:
        """Return the text of each row."""
        known = self.vocabulary[word]
        return [known[place] for place in self.columns[word].tolist()]


def together(
    blocks: Iterable[PointBlock], numbers: Collection[str] = tuple(NUMBERS), rows: int | None = None
) -> PointTable:
    """Return the points of all blocks, one after the other, over one vocabulary, with these of the numbers.

    A block's place is its record's. With the number of all `rows`, blocks that an iterator yields are not kept.
    """
    if rows is None:
        blocks = list(blocks)
        rows = sum(block.rows for block in blocks)
    plain = {name: numpy.empty(rows, NUMBERS[name]) for name in numbers}
    word_columns = {word: _WordColumn(rows) for word in WORDS}
    lengths: list[int] = []
    end = 0
    for block in blocks:
        part = slice(end, end + block.rows)
        for name, column in plain.items():
            column[part] = block.columns[name]
        for word, column in word_columns.items():
            column.fill(part, block.columns[word], block.vocabulary[word])
        lengths.append(block.rows)
        end += block.rows
    records = numpy.repeat(numpy.arange(len(lengths), dtype="i4"), lengths)
    columns = {"record": records, **plain, **{word: block.numbers for word, block in word_columns.items()}}
    return PointTable(columns, {word: list(block.places) for word, block in word_columns.items()})


class _WordColumn:
    """A word of many blocks: `numbers` of a vocabulary that grows, of the smallest type that it fits in."""

    def __init__(self, rows: int) -> None:
        self.places: dict[str, int] = {}
        self.numbers: Column = numpy.empty(rows, smallest_kind(0))
        self._known: dict[int, tuple[list[str], Column]] = {}  # with the lists, so that no other one gets their id

    def fill(self, part: slice, numbers: Column, vocabulary: list[str]) -> None:
        """Put in numbers of a block's vocabulary; blocks that share one share its translation."""
        if id(vocabulary) not in self._known:
            translated = [self.places.setdefault(text, len(self.places)) for text in vocabulary]
            kind = smallest_kind(len(self.places))
            self.numbers = self.numbers.astype(kind, copy=False)
            self._known[id(vocabulary)] = vocabulary, numpy.array(translated, kind)
        self.numbers[part] = self._known[id(vocabulary)][1].take(numbers)


def smallest_kind(count: int) -> str:
    """Return the smallest signed integer type for the numbers of `count` words: columns are long."""
    return "i1" if count < 1 << 7 else "i2" if count < 1 << 15 else "i4"


# Details of a record's points: what verdicts and evidence need of the samples, without the samples.
#
# They are kept in shards next to the points, row by row, and no trend reads them.

QUARTILES = ("lower_quartile", "upper_quartile")  # of all samples, in seconds
# The highest power in watts and temperature in degrees Celsius while they were taken; energy of one launch in joules.
# NaN where nothing was read.
READ = ("power", "temperature", "energy")
# Whether another process was busy on the device.
DISTURBED = "disturbed"
# Medians of the processes in seconds, a list for each point: what `compare` judges.
PROCESSES = "processes"
_DETAILS = (*QUARTILES, *READ, DISTURBED, PROCESSES)


def details_in(record: RecordFile) -> dict[str, Any]:
    """Return the columns of DETAILS for the points of a checked record, in the order of `points_in`.

    PROCESSES is a list of arrays; the others are arrays. Times are float64, what was read is float32. A single value is
    its own quartiles.
    """
    measured = [
        measurement
        for case in record.cases
        for measurement in case.measurements
        if any(g.counts for g in measurement.processes)
    ]
    details: dict[str, Any] = {}
    single = [value for case in record.cases for _, value in single_values(case)]
    quartiles = [*map(_quartiles, measured), *((value, value) for value in single)]
    quartiles = numpy.array(quartiles, "f8").reshape(-1, len(QUARTILES))
    details |= dict(zip(QUARTILES, numpy.ascontiguousarray(quartiles.T), strict=True))
    unread = (float("nan"),) * len(READ)
    read = numpy.array([*map(_read, measured), *(unread for _ in single)], "f4").reshape(-1, len(READ))
    details |= dict(zip(READ, numpy.ascontiguousarray(read.T), strict=True))
    disturbed = [any(part.busy_neighbours for part in measurement.evidence) for measurement in measured]
    details[DISTURBED] = numpy.array([*disturbed, *(False for _ in single)], bool)
    details[PROCESSES] = [
        numpy.array([numpy.median(_seconds(g.counts, g.unit)) for g in measurement.processes if g.counts], "f8")
        for measurement in measured
    ]
    details[PROCESSES] += [numpy.array([value], "f8") for value in single]
    return details


def _quartiles(measurement: MeasurementFile) -> tuple[float, float]:
    samples = numpy.concatenate([_seconds(group.counts, group.unit) for group in measurement.processes])
    lower, upper = numpy.quantile(samples, (0.25, 0.75)).tolist()
    return lower, upper


def _read(measurement: MeasurementFile) -> tuple[float, ...]:
    joules = measurement.energy.joules if measurement.energy and measurement.energy.joules is not None else float("nan")
    return _highest(measurement, "power"), _highest(measurement, "temperature"), joules


def _seconds(counts: Sequence[int], unit: float) -> Column:
    return numpy.array(counts, "f8") * unit


def _highest(measurement: MeasurementFile, quantity: str) -> float:
    values = [part.spans[quantity][2] for part in measurement.evidence if quantity in part.spans]
    return max(values, default=float("nan"))
