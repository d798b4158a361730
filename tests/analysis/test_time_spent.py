"""Where the time of a run went: every second once, whatever the forms of the peers are."""

from dataclasses import replace

from prism_bench.analysis.summary import time_spent, window_seconds, with_cases
from prism_bench.record.measurement import Evidence, Measurement
from tests.report.synthetic import case_result, record_of

SPENT = {
    "untimed": 9.0, "preparing": 1.0, "verifying": 0.5, "kernel": 3.0, "cpu": 0.25, "peer:torch": 2.0,
    "peer:torch_compiled": 4.0, "peer:torch_autotuned": 5.0, "peer:quack": 1.5, "energy": 0.75,
    "peers importing": 0.25, "peers forms": 0.5, "peers state": 0.125,
}  # fmt: skip
CASE = case_result("softmax", spent=SPENT, peers={"quack": {"form": "library"}})
RECORD = record_of(CASE, spent={"compiling": 6.0, "untimed": 7.0, "timed": 20.0}, duration=40.0)


def test_every_second_counts_once_and_verification_by_the_wall_clock():
    found = time_spent(RECORD)
    assert {
        "compilation ahead": 6.0, "verification": 7.5, "preparation": 1.0, "kernels": 3.0, "cpu": 0.25,
        "peers eager": 2.0, "peers compiled": 4.0, "peers autotuned": 5.0, "peers library": 1.5,
        "energy": 0.75, "imports of libraries": 0.25, "forms of peers": 0.5, "state of libraries": 0.125,
        "starts and waiting": 8.125,
    } == found  # fmt: skip
    assert 40.0 == sum(found.values())
    assert sorted(found.values(), reverse=True) == list(found.values())


def test_a_merged_record_has_the_seconds_of_all_parts():
    parts = ({"uuid": "a", "duration": 40.0, "kernels": []}, {"uuid": "b", "duration": 38.0, "kernels": []})
    assert 78.0 == sum(time_spent(replace(RECORD, parts=parts)).values())


def test_the_windows_of_kernels_and_peers_are_counted_once_each_with_what_came_with_them():
    def measured(metric, subject, seconds):
        return Measurement(metric, subject, ((1e-6,),), evidence=(Evidence(seconds, 1), Evidence(seconds, 1)))

    both = [measured(metric, "kernel", 2.0) for metric in ("cold_time", "launch_time")]
    case = replace(
        CASE, measurements=(*both, measured("hot_time", "kernel", 1.0), measured("hot_time", "peer:x", 0.25))
    )
    assert (6.0, 0.5) == window_seconds(record_of(case))


def test_nothing_is_known_of_an_older_record_or_of_some_of_the_cases():
    assert {} == time_spent(record_of(CASE)) == time_spent(with_cases(RECORD, ["softmax"]))
