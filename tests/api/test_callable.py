"""`prism_bench.benchmark` without a device: what it refuses, and how its result reads."""

import re
import sys

import pytest

import prism_bench
from prism_bench.api.callables import Benchmark
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.io.installation import why_no_gpu


def test_an_unknown_mode_is_refused_before_anything_runs():
    with pytest.raises(UsageError, match="mode is 'warm'; it is one of cold, hot"):
        prism_bench.benchmark(lambda: None, mode="warm")


@pytest.mark.parametrize("thing", [7, "softmax", None])
def test_what_cannot_be_called_is_refused(thing):
    with pytest.raises(UsageError, match=f"takes a callable without arguments, not {type(thing).__name__}"):
        prism_bench.benchmark(thing)


def test_without_cupy_the_sentence_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BackendUnavailable, match=re.escape(why_no_gpu("CuPy", "cuda13"))):
        prism_bench.benchmark(lambda: None)


def result(**more):
    return Benchmark("cold_time", "sum", ((1e-3, 1e-3, 2e-3),), **more)


def test_bytes_and_operations_make_rates():
    assert (1e12, 5e11) == pytest.approx((result(bytes=10**9).bandwidth, result(flops=5 * 10**8).flop_rate))


def test_without_them_there_are_none():
    assert (None, None) == (result().bandwidth, result().flop_rate)
    assert "sum cold_time: 1.00 ms (n=3)" == str(result())


def test_it_prints_what_was_measured():
    assert "sum cold_time: 1.00 ms (n=3), 1.00 TB/s, 500 GFLOP/s" == str(result(bytes=10**9, flops=5 * 10**8))


def test_an_empty_one_has_no_rate():
    empty = Benchmark("cold_time", "sum", (), reason="no luck", bytes=8, flops=8)
    assert (None, None) == (empty.bandwidth, empty.flop_rate)
    assert "not measured (no luck)" in str(empty)


def test_it_prints_what_else_was_seen():
    assert "sum cold_time: 1.00 ms (n=3); two levels: why" == str(result(notes=("two levels: why",)))
