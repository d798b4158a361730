"""Every number that an environment variable sets is read by `number_variable`, which refuses every other text."""

import ast
from pathlib import Path

import pytest

import prism_bench
from prism_bench.cli.measuring import SECONDS, line_seconds
from prism_bench.errors import UsageError
from prism_bench.extensions.fleet import catalogue_run
from prism_bench.io.documents import content_of
from prism_bench.io.files import INTERVAL, Due, number_variable

READERS = {
    INTERVAL: Due,
    SECONDS: line_seconds,
    catalogue_run.SECONDS: lambda: catalogue_run.block_seconds(100.0, 2),
    "PRISM_BENCH_LARGEST_JSON": lambda: content_of(Path(__file__), "text"),
}
CONVERSIONS = {"int", "float", "isdecimal", "isdigit", "isnumeric"}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("value", ["abc", "-1", "nan", "inf", "1e999", "5 s", "0x10"])
def test_a_value_that_is_no_number_in_its_range_is_refused(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=f"^{name}={value}: it is a number of (seconds|megabytes)"):
        READERS[name]()


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("value", ["", "7", "1.5"])
def test_a_number_and_an_empty_value_are_taken(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    READERS[name]()
    assert float(value or 3) == number_variable(name, 3.0, "a number")


def test_the_least_number_is_in_the_range(monkeypatch):
    monkeypatch.setenv(SECONDS, "0")
    assert 0.0 == line_seconds()
    monkeypatch.setenv("PRISM_BENCH_LARGEST_JSON", "0")
    with pytest.raises(UsageError, match="=0: it is a number of megabytes, at least 1$"):
        content_of(Path(__file__), "text")


def converts_variable(function):
    """Return whether a function reads an environment variable and calls what makes or checks a number."""

    def name(node):
        return getattr(node, "id", getattr(node, "attr", None))

    nodes = list(ast.walk(function))
    called = {name(node.func) for node in nodes if isinstance(node, ast.Call)}
    return bool(CONVERSIONS & called and {"environ", "getenv"} & {*map(name, nodes)})


def test_no_other_function_makes_a_number_of_a_variable():
    readers = {
        function.name
        for path in Path(prism_bench.__file__).parent.rglob("*.py")
        if "environ" in (text := path.read_text("utf-8"))
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef) and converts_variable(function)
    }
    assert {"number_variable"} == readers
