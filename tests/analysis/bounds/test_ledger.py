"""The ledger: who is to blame for a gap, what belongs to a range, runtime and driver calls as one."""

import pytest

from prism_bench.analysis.bounds.profiles import ledger
from prism_bench.profilers.timeline import COPY, KERNEL, timeline_of

NAMES = ("kernel", "cuLaunchKernel", "cuStreamSynchronize", "cudaLaunchKernel_v7000", "chain", "other")
LAUNCH, WAIT, RUNTIME = 1, 2, 3


def timeline(work, calls=(), ranges=()):
    """Work as (start, end, correlation), calls as (start, end, name, correlation), ranges as (start, end, name)."""
    rows = [(start, end, 0, KERNEL, 0, 0, number, 0) for start, end, number in work]
    called, named = [(*call, 0, 1) for call in calls], [(*one, 0, 1) for one in ranges]
    return timeline_of(rows, called, named, NAMES, source="here", tool="test")


def blamed(calls):
    """Who is to blame for the gap from 100 to 200, before the kernel of call 2."""
    return list(ledger(timeline([(0, 100, 1), (200, 300, 2)], calls)).total.gaps)


def test_a_wait_under_way_when_the_gap_began_is_to_blame():
    assert ["sync"] == blamed([(90, 150, WAIT, 9), (160, 170, LAUNCH, 2)])


def test_a_launch_that_came_at_once_is_the_cost_of_launching():
    assert ["launch"] == blamed([(80, 104, LAUNCH, 1), (105, 195, LAUNCH, 2)])


def test_a_launch_that_came_late_is_the_hosts_doing():
    assert ["host"] == blamed([(180, 190, LAUNCH, 2)])


def test_a_launch_that_had_returned_leaves_the_gap_to_the_device():
    assert ["queued"] == blamed([(10, 20, LAUNCH, 2)])


def test_work_without_a_call_leaves_nobody_to_blame():
    found = ledger(timeline([(0, 100, 1), (200, 300, 2)], [(10, 20, LAUNCH, 7)]))
    assert ["unknown"] == list(found.total.gaps)
    assert any("2 pieces of work have no call" in note for note in found.notes)


def test_the_account_of_the_whole():
    found = ledger(timeline([(0, 100, 1), (50, 80, 2), (200, 300, 3)])).total
    assert (3, 1, 100e-9, 300e-9) == (found.kernels, found.gap_count, *map(pytest.approx, (found.idle, found.span)))
    assert 2 / 3 == pytest.approx(found.busy_share)
    assert 230e-9 == pytest.approx(found.kernel_seconds)


def test_a_runtime_call_and_the_driver_call_inside_are_one_launch():
    calls = [(10, 30, RUNTIME, 1), (15, 25, LAUNCH, 1)]
    assert 1 == ledger(timeline([(40, 50, 1)], calls)).total.launch_calls


def test_a_range_holds_the_work_of_the_calls_inside_it():
    calls = [(10, 20, LAUNCH, 1), (30, 40, LAUNCH, 2), (110, 120, LAUNCH, 3)]
    ranges = [(5, 45, 4), (100, 130, 4), (200, 230, 5)]
    found = ledger(timeline([(50, 60, 1), (70, 80, 2), (150, 160, 3)], calls, ranges))
    assert {"chain": (3, 3), "other": (0, 0)} == {row.name: (row.kernels, row.launch_calls) for row in found.ranges}


def test_the_longest_ranges_are_shown_and_the_others_counted():
    ranges = [(0, 100, 4), (100, 130, 5)]
    found = ledger(timeline([(50, 60, 1)], ranges=ranges), most=1)
    assert ["chain"] == [row.name for row in found.ranges]
    assert 1 == found.left_out


def test_copies_count_their_bytes():
    rows = [(0, 10, 0, KERNEL, 0, 0, 1, 0), (10, 30, 0, COPY, -1, 4096, 2, 0)]
    found = ledger(timeline_of(rows, (), (), NAMES, source="here", tool="test")).total
    assert (1, 1, 4096, 0) == (found.kernels, found.copies, found.copied_bytes, found.gap_count)


def test_two_devices_have_accounts_of_their_own():
    rows = [(0, 10, 0, KERNEL, 0, 0, 1, 0), (0, 30, 1, KERNEL, 0, 0, 2, 0), (20, 30, 0, KERNEL, 0, 0, 3, 0)]
    found = ledger(timeline_of(rows, (), (), NAMES, source="here", tool="test"))
    assert {0: 10e-9, 1: 0.0} == {device: pytest.approx(row.idle) for device, row in found.devices.items()}
    assert 60e-9 == pytest.approx(found.total.span)


def test_blocks_do_not_lose_the_running_maximum(monkeypatch):
    work = [(0, 1000, 1), *((10 * i, 10 * i + 5, i) for i in range(1, 60)), (1200, 1300, 99)]
    whole = ledger(timeline(work)).total
    monkeypatch.setattr("prism_bench.analysis.bounds.profiles._BLOCK", 7)
    assert whole == ledger(timeline(work)).total
    assert 1 == whole.gap_count
