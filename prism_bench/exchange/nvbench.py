"""nvbench's JSON (`--json`, `--jsonbin`) as one record for each device: cold times, and batches as hot times.

`--jsonbin` keeps every sample in a file next to the JSON; without one a cold time is the one number that the JSON has,
the median where there is one, else the mean.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError
from prism_bench.exchange.foreign import Imported, case, field, json_object, number, record, timing, within
from prism_bench.foreign_files import bytes_of, whole_number
from prism_bench.measurement import Measurement
from prism_bench.run_record import CaseResult
from prism_bench.units import count_text

BACKEND = "nvbench"
_COLD = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/q2", "nv/cold/time/gpu/mean")
_HOT = ("nv/batch/time/gpu/mean",)
_SAMPLES = "nv/json/bin:nv/cold/sample_times"
_HIGHEST_CLOCK = 1e11
_CLOCKS = "nv/json/freqs-bin:nv/cold/sample_freqs"


def recognised(data: object) -> bool:
    """Return whether the JSON is nvbench's."""
    return isinstance(data, dict) and "devices" in data and "benchmarks" in data


def read(path: Path) -> Imported:
    """Return the records of the file. nvbench writes no time: the file's last change counts."""
    data = json_object(path)
    devices, benchmarks = (field(data, name, list, str(path)) for name in ("devices", "benchmarks"))
    created = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    versions = data.get("meta", {}).get("version", {})
    schema, own = (versions.get(name, {}).get("string", "unknown") for name in ("json", "nvbench"))
    ids = [field(device, "id", int, f"{path}: devices") for device in devices]
    if len(set(ids)) < len(ids):
        raise ResultsError(f"{path}: devices: two have one id, of {ids}")
    states = list(_states(benchmarks, path, ids))
    found = []
    for device, own_id in zip(devices, ids, strict=True):
        name = field(device, "name", str, f"{path}: devices")
        cases = [_case(state, path) for state in states if state.plain["device"] == own_id]
        _refuse_doubles(cases, path)
        facts = {"device": name, "sm_count": device.get("number_of_sms"), "l2_bytes": device.get("l2_cache_size")}
        found.append(record(BACKEND, name, created, cases, **facts, software={BACKEND: own}, version=schema))
    return Imported(tuple(one for one in found if one.cases))


@dataclass(frozen=True)
class _NvbenchState:
    """One measurement of a benchmark as the file has it, and where it is in the file."""

    benchmark: str
    plain: dict[str, Any]
    place: str


def _states(benchmarks: list[Any], path: Path, devices: list[int]) -> Iterator[_NvbenchState]:
    for benchmark in benchmarks:
        name = field(benchmark, "name", str, f"{path}: benchmarks")
        for index, state in enumerate(field(benchmark, "states", list, f"{path}: {name}")):
            place = f"{path}: {name}: states[{index}]"
            device = field(state, "device", int, place)
            if device not in devices:
                raise ResultsError(f"{place}: device {device} is none of the file's: {devices}")
            yield _NvbenchState(name, state, place)


def _refuse_doubles(cases: list[CaseResult], path: Path) -> None:
    twice = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
    if twice:
        raise ResultsError(f"{path}: {twice[0]:.80} is there twice on one device")


def _case(found: _NvbenchState, path: Path) -> CaseResult:
    state, place = found.plain, found.place
    axes = _fields(state.get("axis_values") or (), "name", place)
    axes = {name: axis["value"] for name, axis in axes.items()}
    if state.get("is_skipped", False) not in (True, False):
        raise ResultsError(f"{place}: 'is_skipped' is {state['is_skipped']!r:.40}, not true or false")
    if state.get("is_skipped"):
        reason = str(state.get("skip_reason") or "the file gives no reason")
        return case(found.benchmark, axes, (), status="skipped", reason=reason)
    listed = _fields(field(state, "summaries", list, place), "tag", place)
    summaries = {
        tag: {name: item.get("value") for name, item in _fields(one["data"], "name", f"{place}: {tag}").items()}
        for tag, one in listed.items()
    }
    times = [_cold(summaries, path, place), _single("hot_time", _HOT, summaries, place)]
    return case(found.benchmark, axes, [time for time in times if time])


def _fields(plain: Iterable[dict[str, Any]], key: str, place: str) -> dict[str, dict[str, Any]]:
    """Return the objects of a list by their names."""
    named: dict[str, dict[str, Any]] = {}
    for one in plain:
        name = field(one, key, str, place)
        if name in named:
            raise ResultsError(f"{place}: '{name:.60}' is there twice")
        named[name] = one
    return named


def _cold(summaries: dict[str, dict[str, Any]], path: Path, place: str) -> Measurement | None:
    samples = _numbers(summaries.get(_SAMPLES), path, place)
    if not samples:
        return _single("cold_time", _COLD, summaries, place)
    clocks = _numbers(summaries.get(_CLOCKS), path, place)
    if clocks and len(clocks) != len(samples):
        raise ResultsError(f"{place}: {count_text(len(clocks), 'clock')} of {count_text(len(samples), 'sample')}")
    if not all(0 < clock < _HIGHEST_CLOCK for clock in clocks):
        raise ResultsError(f"{place}: a clock is outside of 0 to {_HIGHEST_CLOCK:.0e} Hz")
    return replace(timing("cold_time", samples), clocks=(tuple(clocks),) if clocks else ())


def _single(metric: str, tags: Iterable[str], summaries: dict[str, dict[str, Any]], place: str) -> Measurement | None:
    """Return the one number that the JSON has for the metric; None where it has none."""
    tag = next((tag for tag in tags if tag in summaries), None)
    if tag is None:
        return None
    return timing(metric, [number(summaries[tag].get("value"), f"{place}: {tag}")], (f"one number: {tag}",))


def _numbers(named: dict[str, Any] | None, path: Path, place: str) -> list[float]:
    """Return the numbers in the file that the JSON names, in its folder; none where there is no such file."""
    if named is None:
        return []
    file = within(path.parent, named.get("filename"), f"{place}: filename")
    if not file.is_file():
        return []
    promised = whole_number(str(named.get("size")), f"{place}: size")
    content = bytes_of(file, "samples")
    if len(content) != 4 * promised:
        raise ResultsError(f"{file}: {len(content)} bytes; {count_text(promised, 'sample')} of 4 bytes were promised")
    return array("f", content).tolist()
