"""From readings to evidence, and from evidence to a verdict."""

import pytest
from msgspec import structs

from prism_bench.monitor.probe import DeviceReading, Process, reasons_in
from prism_bench.monitor.sampler import Rules, evidence_in, remarks
from prism_bench.record.measurement import Evidence

WELL = Evidence(0.3, 6, spans={"sm_clock": (1.9e9, 1.98e9, 1.98e9)})


def readings(*values, **facts):
    return [DeviceReading(float(at), one, **facts) for at, one in enumerate(values)]


def test_spans_are_lowest_median_highest():
    found = evidence_in(readings({"power": 300.0}, {"power": 650.0}, {"power": 500.0}), None, 0.25)
    assert (0.25, 3, {"power": (300.0, 500.0, 650.0)}) == (found.seconds, found.readings, found.spans)


def test_a_mean_of_the_power_counts_where_there_is_nothing_better():
    both, mean = {"power": 300.0, "power_average": 280.0}, {"power_average": 280.0}
    assert {"power"} == set(evidence_in(readings(both), None, 0.1).spans)
    assert {"power_average"} == set(evidence_in(readings(mean), None, 0.1).spans)


def test_reasons_are_shares_of_the_readings():
    found = evidence_in(readings(*({"clock_reasons": float(bits)} for bits in (0, 4, 0x44, 0x2004))), None, 1.0)
    assert {"sw power cap": 0.75, "hw thermal": 0.25, "reason 0x2000": 0.25} == found.reasons


@pytest.mark.parametrize(
    ("bits", "words"), [(None, ()), (0, ()), (1, ("idle",)), (0x88, ("hw slowdown", "power brake"))]
)
def test_bits_are_told_in_words(bits, words):
    assert words == reasons_in(bits)


def test_what_only_grows_counts_from_the_last_reading_ahead():
    before = DeviceReading(-1.0, {"thermal_throttled": 1.0, "ecc_corrected": 3.0, "ecc_uncorrected": 0.0})
    found = evidence_in(
        readings({"thermal_throttled": 1.25, "ecc_corrected": 4.0, "ecc_uncorrected": 2.0}), before, 0.3, xids=[13]
    )
    assert {"thermal": 0.25} == found.throttled
    assert ("Xid 13", "2 uncorrected memory errors", "1 corrected memory error") == found.events


def test_what_was_not_read_has_its_reason_where_it_matters():
    missing = {"power": "no permission to read it", "tensor_active": "this device does not offer it"}
    found = evidence_in(readings({"sm_clock": 1e9}, missing=missing), None, 0.1)
    assert {"power": "no permission to read it"} == found.missing
    assert {"readings": "none fell into the window"} == evidence_in([], None, 0.1).missing


def process(pid, ours, busy):
    return Process(pid, "train.py", 1e9, ours, busy)


@pytest.mark.parametrize(
    ("there", "neighbours", "busy"),
    [
        ((process(1, True, True),), (), False),
        ((process(1, None, True),), (), False),
        ((process(2, False, False),), ("train.py (pid 2)",), False),
        ((process(2, False, True),), ("train.py (pid 2)",), True),
        ((process(2, False, None),), ("train.py (pid 2)",), True),
    ],
)
def test_a_neighbour_works_unless_the_driver_says_that_it_does_not(there, neighbours, busy):
    found = evidence_in(readings({}, {}, processes=there), None, 0.1)
    assert (neighbours, busy) == (found.neighbours, found.busy_neighbours)


def test_calm_evidence_raises_no_doubt_and_no_remark():
    assert ((), []) == (Rules().doubts(WELL, 1.98e9), list(remarks(WELL)))


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        ({"reasons": {"hw thermal": 1.0, "sw power cap": 1.0}}, "throttled throughout: hw thermal"),
        ({"reasons": {"power brake": 1.0}}, "throttled throughout: power brake"),
        ({"neighbours": ("a (pid 2)",), "busy_neighbours": True}, "another process worked on the GPU: a (pid 2)"),
        ({"events": ("Xid 79", "1 corrected memory error")}, "Xid 79 during the measurement"),
        ({"events": ("2 uncorrected memory errors",)}, "2 uncorrected memory errors during the measurement"),
        (
            {"spans": {"sm_clock": (1e9, 1.2e9, 1.4e9)}},
            "the SM clock was 1.40 GHz at most, below 75 % of this session's best, 1.98 GHz",
        ),
    ],
)
def test_evidence_makes_a_measurement_invalid(change, doubt):
    assert (doubt,) == Rules().doubts(structs.replace(WELL, **change), 1.98e9)


@pytest.mark.parametrize(
    "change",
    [
        {"reasons": {"sw power cap": 1.0}},
        {"reasons": {"hw thermal": 0.9}},
        {"neighbours": ("a (pid 2)",)},
        {"events": ("1 corrected memory error",)},
        {"lost": "lost at 12:00:00 UTC: GPU is lost"},
    ],
)
def test_what_does_no_harm_is_told_and_forgiven(change):
    assert () == Rules().doubts(structs.replace(WELL, **change), 1.98e9)


def test_the_share_of_the_clock_can_be_chosen_and_is_not_asked_without_a_best():
    slow = structs.replace(WELL, spans={"sm_clock": (1.7e9, 1.8e9, 1.8e9)})
    assert () == Rules().doubts(slow, 1.98e9)
    assert 1 == len(Rules(clock_share=0.95).doubts(slow, 1.98e9))
    assert () == Rules(clock_share=0.95).doubts(slow)


def test_remarks_are_what_a_reader_should_know():
    noted = structs.replace(
        WELL, lost="lost at 12:00:00 UTC: GPU is lost", neighbours=("a (pid 2)",), events=("1 corrected memory error",)
    )
    assert [
        "evidence lost at 12:00:00 UTC: GPU is lost",
        "idle on the same GPU: a (pid 2)",
        "1 corrected memory error",
    ] == list(remarks(noted))
