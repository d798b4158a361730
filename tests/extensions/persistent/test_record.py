"""Times of items: samples become spreads, records are written and read back."""

import pytest

from prism_bench.errors import ResultsError
from prism_bench.extensions.persistent import Executor
from prism_bench.extensions.persistent.records import (
    EMPTY,
    ItemSpread,
    ItemTimes,
    LatencyRecord,
    LatencySamples,
    LatencySizes,
    newest,
    read_latencies,
    take_served,
)

SPREAD = ItemSpread(2e-6, 1e-6, 3e-6, 4e-6, 5)


def record(**changes):
    rows = (ItemTimes("empty", "persistent", SPREAD, SPREAD), ItemTimes("k[n=1]", "graph", SPREAD, SPREAD, 1e-7))
    return LatencyRecord(**{"machine": {"id": "toy"}, "created": "now", "commit": "abc", "rows": rows, **changes})


def test_spread_has_median_quartiles_and_p99():
    assert ItemSpread(3.0, 2.0, 4.0, 4.96, 5) == ItemSpread.of([5, 1, 4, 2, 3])


def test_a_record_comes_back_as_it_was_written(tmp_path):
    record().write(tmp_path / "toy" / "one.json")
    latencies = read_latencies(tmp_path / "toy" / "one.json")
    assert record() == latencies
    assert 1e-7 == latencies.row("k[n=1]", "graph").error
    assert latencies.row("k[n=1]", "persistent") is None


def test_the_newest_record_is_that_of_the_last_name(tmp_path):
    assert newest(tmp_path) is None
    for name in ("b/2026-01-02.json", "a/2026-01-03.json", "a/2026-01-01.json"):
        record().write(tmp_path / name)
    assert tmp_path / "a" / "2026-01-03.json" == newest(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", '{"schema": 99}', '{"schema": 1, "rows": [{}]}'])
def test_invalid_record_is_refused(tmp_path, content):
    path = tmp_path / "odd.json"
    path.write_text(content)
    with pytest.raises(ResultsError, match="odd.json: "):
        read_latencies(path)


def test_served_items_are_timed_singly_and_in_bursts():
    samples = LatencySamples()
    with Executor({EMPTY: None}, "emulator") as executor:
        for _ in range(2):
            take_served(samples, executor, EMPTY, LatencySizes(answers=3, burst=4, bursts=2))
        times = samples.times(EMPTY, executor.form, None)
    assert ("empty", "persistent", 6, 4) == (times.case, times.form, times.answer.count, times.each.count)
    assert min(samples.answers + samples.shares) > 0
