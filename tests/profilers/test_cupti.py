"""The collector against a CUPTI that is played: records in, a timeline out."""

import threading
from enum import IntEnum
from types import SimpleNamespace

import pytest

from prism_bench.analysis.bounds.profiles import ledger
from prism_bench.errors import BackendUnavailable, MeasurementInvalid, ResultsError
from prism_bench.profilers import timeline as timeline_file
from prism_bench.profilers.cupti import ActivityCollector


class Kind(IntEnum):
    MEMCPY, MEMSET, DRIVER, RUNTIME, CONCURRENT_KERNEL, MARKER = 1, 2, 4, 5, 10, 12


class Cupti:
    """CUPTI as far as the collector needs it; `records` are handed over when buffers are flushed."""

    ActivityKind = Kind
    driver_api_trace_cbid = IntEnum("driver", {"cuLaunchKernel": 307})
    runtime_api_trace_cbid = IntEnum("runtime", {"cudaLaunchKernel_v7000": 211})

    def __init__(self, *records, dropped=0):
        self.records, self.dropped, self.clock, self.enabled = records, dropped, 0, []

    def activity_register_callbacks(self, requested, completed):
        assert (8 << 20, 0) == requested()
        self._completed = completed

    def activity_enable(self, kind):
        self.enabled.append(kind)

    def activity_disable(self, kind):
        self.enabled.remove(kind)

    def activity_flush_all(self, flag):
        self._completed([one for one in self.records if one.kind in self.enabled])

    def activity_get_num_dropped_records(self, context, stream, address):
        import ctypes

        ctypes.c_size_t.from_address(address).value = self.dropped

    def get_timestamp(self):
        self.clock += 1000
        return self.clock


def kernel(start, end, number, name="kernel"):
    return SimpleNamespace(
        kind=Kind.CONCURRENT_KERNEL, start=start, end=end, device_id=0, name=name, correlation_id=number
    )


def call(start, end, number, cbid=307, kind=Kind.DRIVER):
    return SimpleNamespace(kind=kind, start=start, end=end, cbid=cbid, correlation_id=number, thread_id=1 << 40)


def copy(start, end, size):
    return SimpleNamespace(kind=Kind.MEMCPY, start=start, end=end, device_id=0, bytes=size, correlation_id=0)


def marker(timestamp, flags, name=None):
    where = SimpleNamespace(pt=SimpleNamespace(thread_id=1 << 40))
    return SimpleNamespace(kind=Kind.MARKER, timestamp=timestamp, flags_=flags, id=3, name=name, object_id=where)


def collected(api, runtime=False):
    collector = ActivityCollector(runtime, api)
    with collector:
        pass
    return collector.timeline()


def test_records_become_a_timeline_and_a_ledger():
    api = Cupti(kernel(100, 200, 1), kernel(300, 400, 2), copy(400, 450, 64), call(10, 20, 1), call(30, 40, 2))
    found = ledger(collected(api))
    assert (2, 2, 1, 64, "cupti") == (
        found.total.kernels, found.total.launch_calls, found.total.copies, found.total.copied_bytes, found.tool,
    )  # fmt: skip
    assert ["queued"] == list(found.total.gaps)
    assert [] == api.enabled


def test_ranges_that_the_program_pushes_hold_their_launches():
    api = Cupti(marker(5, 2, "step"), marker(25, 4), call(10, 20, 1), kernel(100, 200, 1))
    assert {"step": 1} == {row.name: row.kernels for row in ledger(collected(api)).ranges}


def test_ranges_of_ours_need_no_marker():
    collector = ActivityCollector(api=Cupti(kernel(100, 200, 1)))
    with collector, collector.range("ours"):
        pass
    timeline = collector.timeline()
    assert [1000] == (timeline.ranges.end - timeline.ranges.start).tolist()


def test_a_range_of_ours_holds_what_its_own_thread_launched():
    """CUPTI tells threads by their pthread id, of which it keeps 32 bits."""
    mine, others = call(1200, 1300, 1), call(1400, 1500, 2)
    mine.thread_id, others.thread_id = threading.get_ident() & 0xFFFFFFFF, (threading.get_ident() + 64) & 0xFFFFFFFF
    collector = ActivityCollector(api=Cupti(kernel(2000, 2100, 1), kernel(2100, 2200, 2), mine, others))
    with collector, collector.range("ours"):
        pass
    assert [("ours", 1)] == [(row.name, row.kernels) for row in ledger(collector.timeline()).ranges]


def test_a_warm_up_is_watched_but_not_told():
    """The clock stands at 1000 when the warm-up begins, at 2000 at its end."""
    warm = kernel(1900, 2100, 1), call(1500, 1600, 1)
    collector = ActivityCollector(api=Cupti(*warm, kernel(3500, 3600, 2), call(3100, 3200, 2)))
    with collector:
        with collector.warm_up():
            pass
        with collector.range("ours"):
            pass
    assert (1, 1) == (ledger(collector.timeline()).total.kernels, ledger(collector.timeline()).total.launch_calls)


def test_the_runtimes_calls_are_recorded_only_when_asked_for():
    records = (kernel(100, 200, 1), call(5, 25, 1, 211, Kind.RUNTIME), call(10, 20, 1))
    assert (1, 2) == (len(collected(Cupti(*records)).calls), len(collected(Cupti(*records), runtime=True).calls))


def test_a_call_without_a_name_keeps_its_number():
    assert "call 999" in collected(Cupti(kernel(100, 200, 1), call(1, 2, 1, cbid=999))).names


def test_dropped_records_are_an_error():
    with pytest.raises(MeasurementInvalid, match="dropped 7 records"):
        collected(Cupti(kernel(1, 2, 1), dropped=7))


def test_no_work_is_an_error():
    with pytest.raises(MeasurementInvalid, match="no kernel, copy or set"):
        collected(Cupti(call(1, 2, 1)))


def test_a_record_that_cannot_be_read_is_not_swallowed():
    with pytest.raises(AttributeError, match="device_id"):
        collected(Cupti(SimpleNamespace(kind=Kind.CONCURRENT_KERNEL, start=1, end=2, name="x", correlation_id=1)))


def test_without_cupti_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cupti", None)
    with pytest.raises(BackendUnavailable, match=r"pip install .*\[cupti\]"):
        ActivityCollector()


def test_a_timeline_survives_its_file(tmp_path):
    timeline = collected(Cupti(kernel(100, 200, 1), call(10, 20, 1)))
    timeline_file.save(timeline, tmp_path / "one.npz")
    assert ledger(timeline) == ledger(timeline_file.load(tmp_path / "one.npz"))


def test_a_damaged_file_is_an_error(tmp_path):
    (tmp_path / "one.npz").write_bytes(b"PK no timeline")
    with pytest.raises(ResultsError, match="not a recorded timeline"):
        timeline_file.load(tmp_path / "one.npz")
