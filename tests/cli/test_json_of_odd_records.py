"""`--json` of every command that reads records: strict JSON or an error, whatever stands in the records."""

import gzip
import inspect
import json
import random
from pathlib import Path

import pytest
from typer.models import ArgumentInfo

from prism_bench.record import store
from prism_bench.record.run_record import encode
from tests.cli.conftest import TOYS
from tests.cli.test_hostile_arguments import COMMANDS, FLAGS, options_of
from tests.report.synthetic import case_result, gpu_record, record_of

ODD = (1e308, -1e308, 1e-320, 0, -1, 10**30, float("inf"), float("nan"), "inf", "nan", None, [], "", True)
SOURCES = ("record", "parts", "a", "b", "source", "runs")
RECORDS = ("record", "parts", "a", "runs")


def reads_records(command):
    """Whether it takes a path of records, and nothing else must be given, such as another action or another format."""
    options, given = options_of(command), inspect.signature(command.callback).parameters
    must = {name for name in options if given[name].default is inspect.Parameter.empty}
    return any(path and name in RECORDS for name, (_, path) in options.items()) and must <= set(SOURCES)


# Those that measure or watch are no readers; a command with another form is there in both.
READING = [
    name
    for name, command in COMMANDS.items()
    if reads_records(command) and "json" in options_of(command) and name not in ("run", "nightly", "monitor", "comment")
]
READING += ["comment --since 2026-01-01", "trend --boards", "check --accept", "store merge"]


def small():
    """A small record with verification, peers and machine code."""
    times = {"cold_time": 1e-3, "hot_time": 9e-4, "cold_time@peer:torch": 2e-3}
    case = case_result("vector_add", times=times, code={"sass": "9f3c0a61", "registers": 32, "launches": 1})
    plain = encode(record_of(case))
    entry = {"seed": 0, "output": "y", "passed": True, "compared": 4, "of": 4, "where": "float64 on the host",
             "max_error": 1e-7, "max_relative": 1e-7, "norm_error": 1e-8, "place": [0], "actual": 1.0, "expected": 1.0,
             "tolerance": "exact", "differing": 0}  # fmt: skip
    plain["cases"][0]["verification"] = [entry, {**entry, "max_error": "inf", "norm_error": "inf", "actual": "nan"}]
    return json.loads(json.dumps(plain))


def places(plain, at=()):
    inside = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for name, value in inside:
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield (*at, name)
        yield from places(value, (*at, name))


def odd_record(number):
    """The small record with some numbers replaced; every third one has but one oddity, so that most are read."""
    draw, plain = random.Random(number), small()
    every = [place for place in places(plain) if place[0] != "schema"]
    for place in draw.sample(every, 1 if number % 3 else 4):
        holder = plain
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = draw.choice(ODD)
    return plain


def words_for(line, path):
    words = line.split()
    name = words[0]
    options = options_of(COMMANDS[name])
    for option, (info, _) in options.items():
        if isinstance(info, ArgumentInfo):
            words += [path] if option in SOURCES else []
        elif option in ("record", "source"):
            words += [FLAGS[name][option], path]
    words += ["--catalogue", TOYS] if "catalogue" in options and line not in ("fuse", "trend") else []
    needed = {"export": ("--output", "out.csv"), "report": ("--output", "site"), "store merge": ("--output", "m.json"),
              "check --accept": ("--output", "b.toml")}  # fmt: skip
    return [*words, *needed.get(line, ()), "--json"]


def strictly(found, said):
    assert found.code in (0, 1, 2, 3), said
    assert "Traceback" not in found.err, said
    if found.out:
        json.loads(found.out, parse_constant=lambda word: pytest.fail(f"{word}: {said}"))
    else:
        assert 2 == found.code, said


@pytest.mark.parametrize("name", READING)
def test_json_is_strict_whatever_the_record_says(shell, name, tmp_path):
    folder = Path("reports/runs/nvidia-h200")
    folder.mkdir(parents=True)
    read = 0
    for number in range(5):
        path = folder / f"20260101T00000{number}Z-abcdef01.json.gz"
        path.write_bytes(gzip.compress(json.dumps(odd_record(number) if number else small()).encode()))
        found = shell(*words_for(name, path))
        strictly(found, f"{name}, record {number}: {found}"[:3000])
        read += bool(found.out)
    assert read or name in ("check --accept", "fuse", "store merge"), "every record was refused: nothing was tried"


@pytest.mark.parametrize("name", READING)
def test_json_of_many_cases_is_strict(shell, name):
    cases = [case_result(f"k{i}", times={"cold_time": 1e-3}) for i in range(200)]
    path = store.save(record_of(*cases), Path("reports/runs/nvidia-h200/20260101T000000Z-abcdef01.json.gz"))
    strictly(shell(*words_for(name, path)), name)


@pytest.mark.parametrize("name", READING)
def test_a_cache_that_cannot_be_written_changes_nothing_for_readers(shell, name, tmp_path, monkeypatch):
    case = case_result("k", times={"cold_time": 1e-3})
    path = store.save(record_of(case), Path("reports/runs/nvidia-h200/20260101T000000Z-abcdef01.json.gz"))
    before = shell(*words_for(name, path)).code
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "file" / "cache"))
    assert before == shell(*words_for(name, path)).code


def test_an_in_memory_record_of_a_gpu_is_strict(shell, tmp_path):
    path = store.save(gpu_record(), tmp_path / "gpu.json.gz")
    strictly(shell("show", path, "--json"), "show")
