"""Traces: written, read back, refused where they are inconsistent."""

import gzip
import json

import pytest

from prism_bench.errors import ResultsError
from prism_bench.extensions.memory import Event, Trace, trace

TOY = Trace("toy", (Event(1, 5000, 0), Event(2, 64, 1), Event(1, 0, 0), Event(3, 5000, 0)), {"device": "none"})


def test_a_trace_comes_back_as_it_was(tmp_path):
    assert TOY == trace.read(trace.save(TOY, tmp_path / "toy.json.gz"))


def test_trace_counts_allocations_and_streams():
    assert (3, 2) == (TOY.allocations, TOY.streams)
    assert (10_064, 5064, 1) == (TOY.tracked().allocated_bytes, TOY.tracked().current, TOY.tracked().repeated)


def test_balanced_trace_releases_live_allocations():
    assert (Event(2, 0, 1), Event(3, 0, 0)) == TOY.balanced().events[4:]
    assert 0 == TOY.balanced().tracked().current


@pytest.mark.parametrize(
    ("events", "place"),
    [([[1, 0, 0]], 0), ([[1, 8, 0], [1, 8, 0]], 1), ([[1, 8, 0], [1, 0, 0], [1, 0, 0]], 2), ([[1, -8, 0]], 0)],
)
def test_events_that_do_not_follow_are_refused(tmp_path, events, place):
    path = tmp_path / "odd.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"schema": 1, "name": "odd", "facts": {}, "events": events}).encode()))
    with pytest.raises(ResultsError, match=f"odd.json.gz: event {place} does not follow"):
        trace.read(path)


def test_a_cut_file_is_refused(tmp_path):
    path = trace.save(TOY, tmp_path / "toy.json.gz")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ResultsError, match="not a readable trace"):
        trace.read(path)


def test_missing_and_newer_traces_are_refused(tmp_path):
    with pytest.raises(ResultsError, match="no such trace"):
        trace.read(tmp_path / "none.json.gz")
    path = tmp_path / "new.json.gz"
    path.write_bytes(gzip.compress(b'{"schema": 99}'))
    with pytest.raises(ResultsError, match="schema 99 is newer"):
        trace.read(path)
