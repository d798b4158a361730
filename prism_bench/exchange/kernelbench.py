"""KernelBench's results as records: its evaluations of generated kernels, and its times of the reference modules.

As its `scripts/eval_from_generations.py` and `generate_baseline_time.py` write them: evaluations are `{problem: [{
sample_id, compiled, correctness, metadata, runtime, runtime_stats}]}`, in older files one sample without a list;
baselines are `{level: {file: {mean, std, min, max, num_trials, hardware, device}}}`, with null or `{error}` for a
module that it could not time. Both are means in milliseconds of one process. Problems are paired by their number, which
begins the name of a baseline's file.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from prism_bench.errors import ResultsError
from prism_bench.exchange.foreign import Imported, case, field, json_object, record, timing
from prism_bench.run_record import CaseResult

BACKEND = "kernelbench"
_LEVEL, _NUMBER = re.compile(r"level\d+"), re.compile(r"(\d+)_")
_UNKNOWN, _META = "unknown", "meta"


def recognised(data: object) -> bool:
    """Return whether the JSON is one of KernelBench's."""
    return isinstance(data, dict) and bool(data) and (_is_baseline(data) or _is_evaluation(data))


def read(path: Path) -> Imported:
    """Return the record of one file. KernelBench writes no time: the file's last change counts."""
    data = json_object(path)
    left_out: list[str] = []
    found = list(_baselines(data, path, left_out) if _is_baseline(data) else _evaluations(data, path))
    created = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    devices = sorted({device for _, device in found})
    records = (
        record(BACKEND, device, created, [one for one, own in found if own == device], device=device, version="1")
        for device in devices
    )
    return Imported(tuple(records), tuple(left_out))


def _is_baseline(data: Mapping[str, Any]) -> bool:
    levels = {key: value for key, value in data.items() if key != _META}
    return bool(levels) and all(_LEVEL.fullmatch(key) and isinstance(value, dict) for key, value in levels.items())


def _is_evaluation(data: Mapping[str, Any]) -> bool:
    return all(str(key).isdecimal() and any("correctness" in one for one in _samples(value))
               for key, value in data.items())  # fmt: skip


def _samples(value: object) -> list[dict[str, Any]]:
    listed = cast("list[object]", value if isinstance(value, list) else [value])
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def _baselines(data: Mapping[str, Any], path: Path, left_out: list[str]) -> Iterator[tuple[CaseResult, str]]:
    for level, problems in data.items():
        for name, stats in problems.items() if level != _META else ():
            place = f"{path}: {level}: {name:.80}"
            number = _NUMBER.match(name)
            if stats is None or (isinstance(stats, dict) and "error" in stats):
                left_out.append(f"{place}: KernelBench could not time it")
                continue
            if number is None or not isinstance(stats, dict):
                raise ResultsError(f"{place}: no problem with a number and its times")
            yield case(level, {"problem": number[1]}, [_time(stats, place)]), _device(stats)


def _evaluations(data: Mapping[str, Any], path: Path) -> Iterator[tuple[CaseResult, str]]:
    for number, value in data.items():
        for index, one in enumerate(_samples(value)):
            place = f"{path}: {number}[{index}]"
            kernel = f"sample{one.get('sample_id', index)}"
            facts = one.get("metadata") if isinstance(one.get("metadata"), dict) else {}
            right = one.get("compiled") is True and one.get("correctness") is True
            times = [_time(one.get("runtime_stats") or {"mean": one.get("runtime")}, place)] if right else []
            changes = {} if right else {"status": "wrong", "reason": "KernelBench did not find it correct"}
            yield case(kernel, {"problem": number}, times, **changes), _device(cast("dict[str, Any]", facts))


def _time(stats: Mapping[str, Any], place: str) -> Any:
    mean = field(dict(stats), "mean", (int, float), place)
    return timing("wall_time", [mean * 1e-3], ("one number: the mean of its trials",))


def _device(facts: Mapping[str, Any]) -> str:
    found = facts.get("hardware")
    return found if isinstance(found, str) and found else _UNKNOWN
