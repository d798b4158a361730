"""What a run of a fleet plans by, before its boards have work."""

from dataclasses import replace
from types import SimpleNamespace

from prism_bench.catalogue import discover
from prism_bench.extensions.fleet.catalogue_run import MISSED, MISSED_BY_RECORD, SECONDS, FleetRun, block_seconds
from prism_bench.run import Settings, job
from tests.extensions.fleet.test_fleet import TOYS


def test_a_plan_reads_no_older_record_where_the_newest_has_all_kernels():
    catalogue = discover(TOYS)
    cases = catalogue.cases(labels=("S0",))
    record = job.run(catalogue, "null", cases, Settings(processes=1))
    newest = replace(record, machine={**record.machine, "uuid": "b"}, duration=9.0)

    def earlier():
        yield newest
        raise AssertionError("each record takes a second to read, while all boards wait")

    boards = [SimpleNamespace(key="a"), SimpleNamespace(key="b")]
    run = FleetRun(None, boards, catalogue, "null", cases, Settings(processes=1), earlier=Again(earlier))
    schedule, _ = run._schedule(cases, [])
    assert schedule.left and not schedule.take("a", 90.0, {"b": 0.0}), "all of it belongs to b"


def test_jobs_are_longer_where_a_record_has_the_times(monkeypatch):
    monkeypatch.delenv(SECONDS, raising=False)
    catalogue = discover(TOYS)
    cases = catalogue.cases(labels=("S0",))
    record = job.run(catalogue, "null", cases, Settings(processes=1))
    known, unknown = (
        FleetRun(None, [], catalogue, "null", cases, Settings(processes=1), earlier=earlier)._schedule(cases, [])[1]
        for earlier in ([replace(record, duration=9.0)], [])
    )
    assert (MISSED_BY_RECORD, MISSED) == (known, unknown)
    assert (1, 2) == tuple(round(800.0 / block_seconds(1600.0, 2, 32.0, missed)) for missed in (known, unknown))


class Again:
    """Records that can be gone through several times, as those of a folder."""

    def __init__(self, make):
        self._make = make

    def __iter__(self):
        return self._make()
