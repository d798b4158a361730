"""KernelBench's results as records: its evaluations of generated kernels, and its times of the reference modules.

As its `scripts/eval_from_generations.py` and `generate_baseline_time.py` write them: evaluations are `{problem: [{
sample_id, compiled, correctness, metadata, runtime, runtime_stats}]}`, in older files one sample without a list;
baselines are `{level: {file: {mean, std, min, max, num_trials, hardware, device}}}`, with null or `{error}` for a
module that it could not time. Both are means in milliseconds of one process. Problems are paired by their number, which
begins the name of a baseline's file. An evaluation without a time (`runtime` -1) was verified and not timed. A row that
names no hardware is that of the others, where all of them name the same.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from prism_bench.errors import ResultsError
from prism_bench.record.formats.foreign import Imported, ImportedRows, case, field, json_object, record, single
from prism_bench.record.run_record import CaseResult

BACKEND = "kernelbench"
_LEVEL, _NUMBER = re.compile(r"level\d+"), re.compile(r"(\d+)_")
_META, _NOT_TIMED = "meta", -1


def recognised(data: object) -> bool:
    """Return whether the JSON is one of KernelBench's."""
    if not isinstance(data, dict) or not data:
        return False
    samples = [sample for value in data.values() for sample in _samples(value)]
    is_evaluation = all(str(key).isdecimal() for key in data) and any(
        isinstance(sample, dict) and "correctness" in sample for sample in samples
    )
    return _is_baseline(data) or is_evaluation


def read(path: Path) -> Imported:
    """Return the records of one file, one for each device. KernelBench writes no time: the last change is the guess."""
    data = json_object(path)
    rows = ImportedRows(path)
    results = list(_baselines(data, path, rows) if _is_baseline(data) else _evaluations(data, path, rows))
    devices = {device for _, device in results if device}
    only = next(iter(devices)) if len(devices) == 1 else ""
    for result, device in results:
        rows.add(result, owner=device or only)
    records = (
        record(BACKEND, device or None, path, rows.cases(device), device=device or None, version="1")
        for device in sorted(rows.owners)
    )
    return Imported(tuple(records), tuple(rows.left_out))


def _is_baseline(data: Mapping[str, Any]) -> bool:
    levels = {key: value for key, value in data.items() if key != _META}
    return bool(levels) and all(_LEVEL.fullmatch(key) and isinstance(value, dict) for key, value in levels.items())


def _samples(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _baselines(data: Mapping[str, Any], path: Path, rows: ImportedRows) -> Iterator[tuple[CaseResult, str]]:
    for level, problems in data.items():
        for name, stats in problems.items() if level != _META else ():
            place = f"{path}: {level}: {name:.80}"
            with rows.row(place):
                number = _NUMBER.match(name)
                if stats is None or (isinstance(stats, dict) and "error" in stats):
                    raise ResultsError(f"{place}: KernelBench could not time it")
                if number is None or not isinstance(stats, dict):
                    raise ResultsError(f"{place}: no problem with a number and its times")
                yield case(level, {"problem": number[1]}, [_time(stats, place)]), _device(stats)


def _evaluations(data: Mapping[str, Any], path: Path, rows: ImportedRows) -> Iterator[tuple[CaseResult, str]]:
    for number, value in data.items():
        for index, sample in enumerate(_samples(value)):
            place = f"{path}: {number}[{index}]"
            with rows.row(place):
                if not isinstance(sample, dict) or "correctness" not in sample:
                    raise ResultsError(f"{place}: {sample!r:.40}, no evaluation with 'correctness'")
                plain = cast("dict[str, Any]", sample)
                facts = cast("dict[str, Any]", plain["metadata"] if isinstance(plain.get("metadata"), dict) else {})
                yield _evaluated(plain, facts, number, index, place), _device(facts)


def _evaluated(plain: dict[str, Any], facts: dict[str, Any], problem: str, index: int, place: str) -> CaseResult:
    """Return the case of one generated kernel: wrong, failed to compile, timed, or verified and not timed."""
    kernel, axes = f"sample{plain.get('sample_id', index)}", {"problem": problem}
    if plain.get("compiled") is not True:
        return case(kernel, axes, (), status="failed", reason=_reason("KernelBench could not compile it", facts))
    if plain["correctness"] is not True:
        return case(kernel, axes, (), status="wrong", reason=_reason("KernelBench did not find it correct", facts))
    verified = ({"passed": True},)
    stats = plain.get("runtime_stats") or {"mean": plain.get("runtime")}
    if stats.get("mean") in (None, _NOT_TIMED):
        return case(kernel, axes, (), verification=verified, reason="KernelBench verified it and did not time it")
    return case(kernel, axes, [_time(stats, place)], verification=verified)


def _reason(text: str, facts: dict[str, Any]) -> str:
    """Return the text with what KernelBench wrote about the failure, where it did."""
    messages = [facts[name] for name in facts if name.endswith(("_error", "_issue")) and facts[name]]
    return f"{text}: {str(messages[0]).strip():.500}" if messages else text


def _time(stats: Mapping[str, Any], place: str) -> Any:
    mean = field(dict(stats), "mean", (int, float), place)
    return single("wall_time", mean * 1e-3, "the mean of its trials")


def _device(facts: Mapping[str, Any]) -> str:
    """Return the hardware that the row names; empty where it names none."""
    hardware = facts.get("hardware")
    return hardware if isinstance(hardware, str) else ""
