"""JSON that every reader takes: no infinities, no NaN, and a reason wherever one was."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from prism_bench.io.documents import json_line, json_text

HOUSE = Path(__file__).resolve().parents[2]
# Who may write JSON otherwise: literals of other languages, asv's results (which have NaN), a schema that refuses NaN,
# damaged files, and data for the site's own scripts, whose numbers orjson makes null.
OWN_WAYS = {
    "io/documents.py": "json.dumps",
    "analysis/gate/budgets.py": "json.dumps", "report/asv/results.py": "json.dumps",
    "record/store/parquet.py": "orjson.dumps", "report/site/page.py": "orjson.dumps",
    "report/site/data_files.py": "orjson.dumps",
}  # fmt: skip


def strictly(text):
    """The value behind strict JSON; `Infinity` and `NaN` are errors."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": math.inf}, {"a": None, "a_reason": "infinite"}),
        ({"a": -math.inf}, {"a": None, "a_reason": "minus infinite"}),
        ({"a": math.nan, "b": 1.5}, {"a": None, "a_reason": "not a number", "b": 1.5}),
        ({"a": [1.0, math.nan, math.inf]}, {"a": [1.0, None, None], "a_reason": "2 null: infinite and not a number"}),
        ({"a": {"b": (math.nan,)}}, {"a": {"b": [None], "b_reason": "1 null: not a number"}}),
        ([{"a": math.inf}], [{"a": None, "a_reason": "infinite"}]),
        ({"a": math.nan, "a_reason": "nobody measured it"}, {"a": None, "a_reason": "nobody measured it"}),
        ({"a": np.float32(math.inf)}, {"a": None, "a_reason": "infinite"}),
        ({"a": np.array([1, 2])}, {"a": [1, 2]}),
        ({("x", 1): math.nan}, {"('x', 1)": None, "('x', 1)_reason": "not a number"}),
        ({"path": Path("x")}, {"path": "x"}),
        ({}, {}),
        (math.nan, None),
    ],
)
def test_what_json_has_not_is_null_with_a_reason(value, expected):
    assert expected == strictly(json_text(value))


def test_what_is_finite_stays_as_it_was():
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": 10**400}}
    assert value == strictly(json_text(value)) == strictly(json_text(value, indent=1))


def test_a_line_for_our_own_processes_keeps_nan():
    assert math.isnan(json.loads(json_line({"a": math.nan}))["a"])


def test_whatever_is_nested_in_whatever_is_json():
    draw = random.Random(5)
    leaves = [math.inf, -math.inf, math.nan, 0.0, 1e308, 10**30, "nan", None, np.float64(math.nan), np.int8(3), b"\xff"]

    def value(depth):
        kind = draw.randrange(4) if depth else 3
        if kind == 0:
            return {draw.choice(["a", 1, None, ("b",), math.nan]): value(depth - 1) for _ in range(draw.randrange(4))}
        if kind == 1:
            return [value(depth - 1) for _ in range(draw.randrange(4))]
        return draw.choice(leaves) if kind == 3 else (value(depth - 1),)

    for _ in range(300):
        strictly(json_text(value(4)))


def test_json_is_written_in_one_place():
    package, found = HOUSE / "prism_bench", list[str]()
    for path in package.rglob("*.py"):
        allowed = OWN_WAYS.get(str(path.relative_to(package)), "")
        text = path.read_text().replace(allowed, "") if allowed else path.read_text()
        found += [str(path)] if "json.dumps(" in text else []
        assert not allowed or allowed in path.read_text(), f"{path} needs no exception any more"
    assert [] == found, "these write JSON themselves: use prism_bench.io.documents"
