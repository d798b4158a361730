"""Every error says what would have been right, and what a command ends with."""

import re
from pathlib import Path

import pytest

from prism_bench import errors

EXIT_CODES = {
    "UsageError": 2, "SpecError": 1, "CompilationFailed": 1, "VerificationFailed": 1, "BackendUnavailable": 2,
    "MeasurementInvalid": 3, "ProfilerError": 2, "ResultsError": 2, "ForgeError": 2, "QueueFull": 2, "ItemFailed": 2,
    "CacheUnavailable": 2, "ExtraMissing": 2, "HistoryMoved": 2,
}  # fmt: skip


@pytest.mark.parametrize(("name", "code"), EXIT_CODES.items())
def test_each_error_has_its_exit_code(name, code):
    kind = getattr(errors, name)
    assert issubclass(kind, errors.PrismBenchError)
    assert code == kind.exit_code


def test_every_error_of_the_tree_is_listed():
    assert set(EXIT_CODES) == {kind.__name__ for kind in errors.kinds()}


def test_an_error_of_another_module_is_a_kind_of_one_of_the_tree():
    package = Path(errors.__file__).parent
    direct = [path for path in package.rglob("*.py") if re.search(r"class \w+\(PrismBenchError\b", path.read_text())]
    assert [package / "errors.py"] == direct


def test_an_unknown_name_comes_with_the_nearest_ones():
    error = errors.unknown("kernel", "sofmax", ["softmax", "matmul", "conv2d"])
    assert "unknown kernel 'sofmax'; did you mean softmax?" == str(error)


def test_a_name_near_nothing_comes_with_what_is_known():
    error = errors.unknown("kernel", "zzz", ["softmax", "matmul"])
    assert "unknown kernel 'zzz'; known: matmul, softmax" == str(error)


def test_where_nothing_is_known_that_is_said():
    assert "unknown kernel 'zzz'; there is none at all" == str(errors.unknown("kernel", "zzz", []))
