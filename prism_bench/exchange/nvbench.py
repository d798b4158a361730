"""nvbench's JSON (`--json`, `--jsonbin`) as one record for each device: cold times, and batches as hot times.

`--jsonbin` keeps every sample in a file beside the JSON; without one a cold time is the one number that the JSON has,
the median where there is one, else the mean.
"""

from array import array
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.exchange.foreign import Imported, case, field, read_json, record, timing
from prism_bench.run_record import CaseResult

BACKEND = "nvbench"
_COLD = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/q2", "nv/cold/time/gpu/mean")
_HOT = ("nv/batch/time/gpu/mean",)
_SAMPLES = "nv/json/bin:nv/cold/sample_times"
_CLOCKS = "nv/json/freqs-bin:nv/cold/sample_freqs"


def recognised(data: object) -> bool:
    """Whether the JSON is nvbench's."""
    return isinstance(data, dict) and "devices" in data and "benchmarks" in data


def read(path: Path) -> Imported:
    """The records of the file. nvbench notes no time: that of the file's last change is taken for it."""
    data = read_json(path)
    devices, benchmarks = (field(data, name, list, str(path)) for name in ("devices", "benchmarks"))
    created = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    versions = data.get("meta", {}).get("version", {})
    schema, own = (versions.get(name, {}).get("string", "unknown") for name in ("json", "nvbench"))
    found = []
    for device in devices:
        number, name = field(device, "id", int, f"{path}: devices"), field(device, "name", str, f"{path}: devices")
        cases = [_case(one, state, path) for one, state in _states(benchmarks, path) if state.get("device") == number]
        facts = {"device": name, "sm_count": device.get("number_of_sms"), "l2_bytes": device.get("l2_cache_size")}
        found.append(record(BACKEND, name, created, cases, **facts, software={BACKEND: own}, version=schema))
    return Imported(tuple(one for one in found if one.cases))


def _states(benchmarks, path):
    for benchmark in benchmarks:
        name = field(benchmark, "name", str, f"{path}: benchmarks")
        for state in field(benchmark, "states", list, f"{path}: {name}"):
            yield name, state


def _case(name: str, state: dict, path: Path) -> CaseResult:
    axes = {axis["name"]: axis["value"] for axis in state.get("axis_values") or ()}
    if state.get("is_skipped"):
        return case(name, axes, (), status="skipped", reason=state.get("skip_reason") or "the file gives no reason")
    summaries = {one["tag"]: {item["name"]: item.get("value") for item in one["data"]} for one in state["summaries"]}
    times = [_cold(summaries, path), _single("hot_time", _HOT, summaries)]
    return case(name, axes, [time for time in times if time])


def _cold(summaries, path):
    samples = _beside(summaries.get(_SAMPLES), path)
    if not samples:
        return _single("cold_time", _COLD, summaries)
    clocks = _beside(summaries.get(_CLOCKS), path)
    return replace(timing("cold_time", samples), clocks=(tuple(clocks),) if clocks else ())


def _single(metric, tags, summaries):
    """The one number that the JSON has for the metric; None where it has none."""
    tag = next((tag for tag in tags if tag in summaries), None)
    return timing(metric, [float(summaries[tag]["value"])], (f"one number: {tag}",)) if tag else None


def _beside(told, path):
    """The numbers in the file beside the JSON that it tells of; none where there is none or it was not kept."""
    beside = path.parent / told["filename"] if told else None
    if beside is None or not beside.is_file():
        return []
    content = beside.read_bytes()
    if len(content) != 4 * int(told["size"]):
        raise ResultsError(f"{beside}: {len(content)} bytes; {told['size']} samples of 4 bytes were promised")
    return array("f", content).tolist()
