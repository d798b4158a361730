"""The evidence of all measurements as one account; a record without any has none."""

from dataclasses import replace

from prism_bench.analysis.run_analysis import findings
from prism_bench.analysis.summary import condition_texts, conditions
from prism_bench.record.measurement import Evidence
from tests.report.synthetic import case_result, record_of

COOL = Evidence(
    0.3, 6, {"sm_clock": (1.98e9, 1.98e9, 1.98e9), "power": (300.0, 400.0, 450.0), "temperature": (35, 36, 40)}
)  # fmt: skip
WARM = Evidence(
    0.2, 4, {"sm_clock": (1.70e9, 1.80e9, 1.98e9), "power": (500.0, 600.0, 690.0), "temperature": (50, 55, 61)},
    reasons={"sw power cap": 0.5}, neighbours=("train.py (pid 7)",),
)  # fmt: skip


def watched(*evidence, notes=()):
    """A record of two cases, each with this evidence."""
    record = record_of(case_result("k", times={"cold_time": 1e-3}), case_result("l", times={"cold_time": 1e-3}))
    seen = lambda case: tuple(replace(one, evidence=evidence, notes=notes) for one in case.measurements)  # noqa: E731
    cases = tuple(replace(case, measurements=seen(case)) for case in record.cases)
    return replace(record, cases=cases, monitor=({"cpu_share": 0.004}, {"cpu_share": 0.006}))


def test_a_record_that_nobody_watched_has_none():
    assert conditions(watched()) is None


def test_all_windows_add_up():
    found = conditions(watched(COOL, WARM))
    windows = found.windows
    assert (5 * windows, (1.70e9, 1.89e9, 1.98e9)) == (found.readings, found.spans["sm_clock"])
    assert ({"sw power cap": windows // 2}, ("train.py (pid 7)",), 0.006) == (
        found.reasons,
        found.neighbours,
        found.cost,
    )


def test_in_words():
    told = dict(condition_texts(conditions(watched(COOL, WARM))))
    windows = conditions(watched(COOL, WARM)).windows
    assert {
        "SM clock": "1.89 GHz (1.70 GHz to 1.98 GHz)",
        "power": "500 W (300 W to 690 W)",
        "temperature": "46 C (35 C to 61 C)",
        "clock held down": f"sw power cap in {windows // 2} of {windows} windows",
        "neighbours": "train.py (pid 7)",
        "readings": f"{5 * windows} in {windows} windows",
        "sampler": "0.6 % of a core at most",
    } == told
    assert "1.98 GHz" == dict(condition_texts(conditions(watched(COOL))))["SM clock"]
    assert "never" == dict(condition_texts(conditions(watched(COOL))))["clock held down"]


def test_what_was_noted_is_one_finding_however_often():
    record = watched(COOL, notes=("evidence lost at 12:00:00 UTC: GPU is lost",))
    told = [one.message for one in findings(record) if one.kind == "evidence"]
    count = sum(len(case.measurements) for case in record.cases)
    assert [f"evidence lost at 12:00:00 UTC: GPU is lost ({count} measurements)"] == told
