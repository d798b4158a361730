"""Script files that hand data to pages: records to compare, series, and resources of kernels."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict

import numpy
import orjson

from prism_bench.analysis import peers
from prism_bench.analysis.build_identity import BuildIdentity
from prism_bench.analysis.compare import comparable, comparison, estimate
from prism_bench.analysis.compare.estimate import Medians, cycles
from prism_bench.analysis.compare.noise import Noise, stored_noise
from prism_bench.analysis.trend import Course
from prism_bench.analysis.trend import series as windows
from prism_bench.errors import ResultsError
from prism_bench.record.identity import Owner
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.store import History
from prism_bench.record.store.history import in_processes, seal_of
from prism_bench.record.store.points import Facts, utc
from prism_bench.record.store.records import read
from prism_bench.report.plain import backend_name
from prism_bench.report.site.context import NewestRecord, Places, SiteContext
from prism_bench.report.site.page import file_name
from prism_bench.spec.metric import is_exact
from prism_bench.workflows.compile_table import read_table

# What a record brings to a comparison, as a script file: the page compares any two of them by itself.
#
# Two of a thousand records make half a million pairs, so nothing of a pair is computed beforehand. A record's side
# holds what `analysis.compare.comparison` asks of it before it judges: the logs of its processes' medians with their
# variances, in seconds and in cycles, what identifies its machine code, and the reasons for what it does not have. A
# side is named after its record's content and after the code that makes it: it is made once and kept.

FOLDER = "data/records"
SIDE, _METRIC = "{side}", "{metric}"  # known when two records are compared
_DIGITS = 8  # of a logarithm: a hundred-millionth of the time


def _side_name(path: Path) -> str | None:
    """Return the name of the side of the record at `path`; None where there is no file."""
    try:
        return hashlib.sha256(f"{path.parent.name}/{path.name} {seal_of(path)} {_maker()}".encode()).hexdigest()[:10]
    except OSError:
        return None


def file_of(side: str) -> str:
    """Return the file of the side of that name."""
    return f"{FOLDER}/{side}.js"


def side_files(
    site: Path, sides: Sequence[tuple[str, Path]], known: Mapping[Path, RunRecord] = MappingProxyType({})
) -> Iterator[tuple[str, bytes | None]]:
    """Yield the file of each side, made from its record; None for the content of one that is in `site` already.

    Records that are `known` are not read again.
    """
    new: list[tuple[str, Path]] = []
    for side, path in sides:
        if _is_whole(site / file_of(side)):
            yield file_of(side), None
        elif path in known:
            yield file_of(side), _script(side, known[path])
        else:
            new.append((side, path))
    for (side, _), content in zip(new, in_processes(_content, new), strict=True):
        if content:
            yield file_of(side), content


def _is_whole(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-len(_END), 2)
            return file.read() == _END
    except OSError:
        return False


_END = b");\n"


def _content(named: tuple[str, Path]) -> bytes | None:
    """Return the side as a script; None where its record can no longer be read."""
    side, path = named
    try:
        return _script(side, read(path, edges=False))
    except ResultsError:
        return None


def _script(side: str, record: RunRecord) -> bytes:
    return b"prism.give(%s, 0, %s%s" % (orjson.dumps(side), orjson.dumps(side_of(record)), _END)


def side_of(record: RunRecord) -> dict[str, Any]:
    """Return the side of the record as plain values.

    `cases` maps a case to `[metric, seconds, spread, logs, variances, in cycles, resolution, code, build]`, where
    `in cycles` is `[logs, variances]` or null, `code` null where the device's clock did not read it, and `build` what
    `_build` returns; or to `[metric, reason]`.
    `units` maps the kernels of a merged record to the UUIDs of the devices that measured them; of others it is null.
    `boards` maps the cases that another board than their kernel's measured. `host` is whose clock read the times of the
    host's; null where it is unknown, or where there are several.
    """
    protocol = comparable.value_settings(record.protocol)
    hosts = {record.host_of(case) for case in record.cases if case.measurements}
    return {
        "machine": record.machine.get("id"),
        "backend": record.backend,
        "device": comparable.device_of(record),
        "uuid": record.machine.get("uuid"),
        "units": _units(record),
        "boards": _boards(record),
        "complete": record.complete,
        "host": hosts.pop() if len(hosts) == 1 else None,
        "settings": comparable.settings_of(record),
        "version": record.protocol.get("version"),
        "protocol": {key: orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode() for key, value in protocol.items()},
        "software": {str(key): str(value) for key, value in record.software.items()},
        "cases": {case.name: _case(case) for case in record.cases if not case.is_edge},
    }


def _units(record: RunRecord) -> dict[str, Any] | None:
    kernels = [kernel for part in record.parts for kernel in part.get("kernels", ())]
    return {kernel: record.unit_of(kernel) for kernel in kernels} if record.parts else None


def _boards(record: RunRecord) -> dict[str, str]:
    return {
        case.name: case.board
        for case in record.cases
        if not case.is_edge and case.board and case.board != record.unit_of(case.kernel)
    }


def _case(case: CaseResult) -> list[Any]:
    metric = peers.clock_of(case) if case.measurements else None
    reason = comparison.missing(case, metric or _METRIC, SIDE)
    if reason:
        return [metric, reason]
    measurement = case.measurement(metric) if metric else None
    assert metric and measurement, "a case that lacks nothing was measured"
    if min(min(process) for process in measurement.processes if process) <= 0:
        return [metric, f"{SIDE} has a time that is not above zero"]
    times, clocked = estimate.medians(measurement.processes), cycles(measurement)
    return [
        metric,
        measurement.median,
        measurement.spread,
        *_plain(times),
        _plain(clocked) if clocked else None,
        times.resolution,
        _code(case) if comparison.on_device(metric) else None,
        _build(case),
    ]


def _plain(medians: Medians) -> list[list[float]]:
    return [[round(log, _DIGITS) for log in medians.logs], [float(f"{variance:.5g}") for variance in medians.variances]]


def _code(case: CaseResult) -> list[str | None] | None:
    """Return a few letters for each thing that makes code and its launches the same.

    A thing that the record does not have is null; all is null where it knows no machine code.
    """
    known = [case.code[name] if name in case.code else None for name in comparison.LAUNCHED]
    return [value if value is None else _letters(value) for value in known] if case.code.get("sass") else None


def _build(case: CaseResult) -> list[str | None] | None:
    """Return the compiler with its version, and letters for what it got and for what it made; null where unknown."""
    known = BuildIdentity.of(case.code)
    if not known.compiler or not case.code.get("sass"):
        return None
    return [known.compiler, _letters(known.source) if known.source else None, _letters(case.code["sass"])]


def _letters(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:8]


@cache
def _maker() -> str:
    """Return a digest of the code that makes sides, this file and all of `analysis`: another code makes others."""
    sources = [Path(__file__), *sorted(Path(comparison.__file__).parents[1].rglob("*.py"))]
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]


# The runs of every series as script files, which a page from disk may load where it may fetch nothing.
#
# The runs are cut into chunks of a fixed length, and a file is named after what it holds. So a new run makes one new
# file for each kernel, and the files of all full chunks stay as they are, however long the history grows.

CHUNK = 128  # runs; a window of a trend has a whole number of them
_SERIES_DATA_FOLDER = "data"


@dataclass(frozen=True)
class Data:
    """One file: its place in the site and what is in it. `first` is the number of its first run."""

    name: str
    content: bytes
    first: int


def _runs_data(runs: Sequence[Facts], sides: Sequence[str | None]) -> list[Data]:
    """Return when each run was, its commit, and its record's side: `[[created, commit, side], ...]`, chunk by chunk."""
    rows = [[facts.created, (facts.commit or "")[:8], side] for facts, side in zip(runs, sides, strict=True)]
    return [_data("nights", first, rows[first : first + CHUNK]) for first in range(0, len(rows), CHUNK)]


def noise_data(noise: Noise) -> Data:
    """Return the noise floors: whose they are, and `{case: {metric: [variance, freedom, variance in cycles]}}`."""
    floors: dict[str, dict[str, list[float | None]]] = {}
    for (case, metric), floor in noise.floors.items():
        in_cycles = floor.spread_in_cycles
        variances = floor.spread.variance, in_cycles.variance if in_cycles else None
        floors.setdefault(case, {})[metric] = [variances[0], floor.freedom, variances[1]]
    plain = {"device": noise.device, "backend": noise.backend, "protocol": noise.protocol, "floors": floors}
    return _data("noise", 0, plain)


def series_data(context: SiteContext, kernels: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Data]]:
    """Yield the runs of every kernel's cases in chunks, each with its kernel; window is read after window.

    A chunk is `{case: {"metric subject": [seconds or null, ...]}}`, one for each run.
    """
    places = numpy.array([*context.run_numbers])
    for number, window in enumerate(context.past.windows()):
        begin = number * windows.LENGTH
        runs = range(begin, min(begin + windows.LENGTH, len(context.own)))
        columns: dict[str, dict[str, numpy.ndarray]] = {}
        for course in window:
            name = f"{course.key.metric} {course.key.subject}"
            columns.setdefault(course.key.case, {})[name] = _by_run(course, places[runs.start : runs.stop])
        for kernel, cases in kernels.items():
            of_kernel = {case: columns[case] for case in cases if case in columns}
            for first in runs[::CHUNK]:
                chunk = slice(first - begin, first - begin + CHUNK)
                cut = {case: part for case, known in of_kernel.items() if (part := _cut(known, chunk))}
                if cut:
                    yield kernel, _data(file_name(kernel), first, cut)


def _by_run(series: Course, places: numpy.ndarray) -> numpy.ndarray:
    """Return the values of the runs at these places of the history, NaN for a run without a trusted value."""
    values = numpy.full(len(places), numpy.nan)
    # After the first: samples have four digits, a count has all of its digits.
    digits = 6 if is_exact(series.key.metric) else 3
    scale = 10.0 ** (digits - numpy.floor(numpy.log10(series.values)))
    values[numpy.searchsorted(places, series.records)] = numpy.round(series.values * scale) / scale
    return values


def _cut(columns: Mapping[str, numpy.ndarray], chunk: slice) -> dict[str, numpy.ndarray]:
    parts = {name: values[chunk] for name, values in columns.items()}
    return {name: values for name, values in parts.items() if not numpy.isnan(values).all()}


def _data(name: str, first: int, plain: object) -> Data:
    text = orjson.dumps(plain, option=orjson.OPT_SERIALIZE_NUMPY)
    content = b"prism.give(%s, %d, %s);\n" % (orjson.dumps(name), first, text)
    digest = hashlib.sha256(content).hexdigest()[:10]
    return Data(f"{_SERIES_DATA_FOLDER}/{name}/{first:06}-{digest}.js", content, first)


# The records of every machine, as the page offers them that compares any two.


@dataclass(frozen=True)
class RecordList:
    """The records of one machine, backend and environment, oldest first; there are `count` of them.

    `runs` are the files that list them, `noise` the one with its noise floor; `sides` names each record's side and the
    file that it is made of.
    """

    machine: str
    backend: str
    count: int
    runs: Sequence[Data]
    noise: Data | None
    sides: Sequence[tuple[str, Path]]

    @property
    def data(self) -> Iterator[Data]:
        """Yield the files of the list, without the sides."""
        yield from self.runs
        yield from filter(None, [self.noise])

    def plain(self) -> dict[str, object]:
        """Return the list as a page's script reads it."""
        return {
            "machine": self.machine,
            "backend": self.backend,
            "records": self.count,
            "nights": [[data.first, data.name] for data in self.runs],
            "noise": self.noise.name if self.noise else None,
        }


def record_lists(run: NewestRecord, others: Sequence[Facts], history: History, places: Places) -> list[RecordList]:
    """Return the list of the run's machine, then those of the `others` of its backend: only they can be compared."""
    owners = [run.record.owner, *(facts.owner for facts in others if facts.backend == run.record.backend)]
    return [_record_list(owner, run, history, places) for owner in owners]


def _record_list(owner: Owner, newest: NewestRecord, history: History, places: Places) -> RecordList:
    records = history.of(owner).records
    paths = [_path(facts, newest, places) for facts in records]
    names = [_side_name(path) for path in paths]
    sides = {name: path for name, path in zip(names, paths, strict=True) if name}
    noise = stored_noise(records[0].machine, places.noise)
    return RecordList(
        records[0].machine,
        backend_name(records[0]),
        len(records),
        _runs_data(records, names),
        noise_data(noise) if noise else None,
        list(sides.items()),
    )


def _path(facts: Facts, newest: NewestRecord, places: Places) -> Path:
    """Return the record's path; one that was named on the command line may be anywhere."""
    is_newest = (utc(newest.record.created), newest.record.commit) == (facts.created, facts.commit)
    return newest.path if is_newest else places.runs / facts.file


# What each kernel's entries take on each architecture, from the stored table of compiled resources.


class Taken(NamedTuple):
    """What an entry takes on one architecture: stack and spills in bytes of a thread, shared memory of a block."""

    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    barriers: int


class KernelResources(TypedDict):
    """Compiled resources of a kernel: of each entry, by architecture, the numbers that `facts` names."""

    architectures: list[str]
    facts: tuple[str, ...]
    entries: dict[str, dict[str, Taken]]


def resources(places: Places) -> dict[str, KernelResources]:
    """Return the resources of each kernel's entries, by kernel.

    Empty where there is no table; a ResultsError where it cannot be read.
    """
    kernels: dict[str, dict[str, dict[str, Taken]]] = {}
    for row in read_table(places.resources):
        taken = Taken(*(getattr(row, name) for name in Taken._fields))
        kernels.setdefault(row.kernel, {}).setdefault(row.entry, {})[row.architecture] = taken
    return {
        kernel: {
            "architectures": sorted({architecture for by in entries.values() for architecture in by}, key=int),
            "facts": Taken._fields,
            "entries": entries,
        }
        for kernel, entries in kernels.items()
    }
