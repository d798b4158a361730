"""What explains a step: what other cases share, what outranks it, and what two records must share to be compared."""

import pytest

from prism_bench.analysis.compare.comparison import compare
from prism_bench.analysis.trend import steps, trend
from prism_bench.analysis.trend.causes import shifts
from prism_bench.errors import ResultsError
from tests.analysis.trend.histories import SOFTWARE, history, row, series
from tests.analysis.trend.test_trend import NIGHT, changed, from_night, slower, the_step
from tests.report.synthetic import case_result, record_of


def still(count=4, step=1.0, **columns):
    """Other cases, whose machine code stays as it is."""
    return [row(series(seed=9 + i, steps={NIGHT: step}), case=f"still{i}[n=1]", **columns) for i in range(count)]


def steps_of_k(*rows, facts):
    return [step for step in steps(history(40, *rows, facts=facts)) if step.key.case == "k[n=1]"]


def test_another_unit_excuses_no_new_code():
    """A regression of new code was a note, as long as the night ran on another GPU of the same name."""
    new = slower(code=from_night(NIGHT, "c1", "c2"))
    (step,) = steps_of_k(new, *still(), facts=changed(device="GPU-2"))
    assert "code" == step.cause.kind
    assert step.cause.also[0].startswith("another device of the same name (the other cases moved by ")
    assert "bad" == shifts([step])[0].gravity()
    assert "code" == the_step(new, facts=changed(device="GPU-2")).cause.kind  # nobody says what the unit does


def test_a_merged_record_whose_other_unit_changed_excuses_no_case():
    """The record's units are others, the case's own one is the same: the others share its step by chance."""
    merged = {"device": from_night(NIGHT, "GPU-1+GPU-2", "GPU-1+GPU-3")}
    facts = lambda night: {name: value(night) for name, value in merged.items()}  # noqa: E731
    (step,) = steps_of_k(slower(), *still(step=1.1), facts=facts)
    assert "unexplained" == step.cause.kind
    (step,) = steps_of_k(slower(board=""), *still(step=1.1, board=""), facts=facts)
    assert "device" == step.cause.kind


def test_another_unit_explains_what_the_others_share_and_no_more():
    shared = {}
    for others in (1.0, 1.03, 1.1):
        (step,) = steps_of_k(slower(), *still(step=others), facts=changed(device="GPU-2"))
        shared[others] = step.cause.kind, shifts([step])[0].gravity()
    assert {1.0: ("unexplained", "bad"), 1.03: ("unexplained", "bad"), 1.1: ("device", "note")} == shared


def test_a_unit_that_is_slower_for_all_is_the_cause_of_new_code_too():
    new = slower(code=from_night(NIGHT, "c1", "c2"))
    (step,) = steps_of_k(new, *still(step=1.1), facts=changed(device="GPU-2"))
    assert ("device", ("the machine code changed",)) == (step.cause.kind, step.cause.also)


def test_another_protocol_excuses_no_new_code_either():
    new = slower(code=from_night(NIGHT, "c1", "c2"))
    (step,) = steps_of_k(new, *still(), facts=changed(protocol={"version": 2}))
    assert "code" == step.cause.kind


def test_a_clock_explains_no_more_than_its_own_change():
    slow = {"clock": from_night(NIGHT, 1.98e9, 1.94e9)}
    assert ["unexplained", "clock"] == [the_step(slower(factor, **slow)).cause.kind for factor in (2.0, 1.03)]


def test_two_causes_close_to_each_other_are_both_named():
    values = series(steps={NIGHT: 1.06, NIGHT + 4: 1.06})
    driver = lambda night: {"software": {**SOFTWARE, "driver": "580.2" if night >= NIGHT + 4 else "570.1"}}  # noqa: E731
    found = steps(history(40, row(values, code=from_night(NIGHT, "c1", "c2")), facts=driver))
    assert [("code", "h200/020.json.gz"), ("driver", "h200/024.json.gz")] == [
        (step.cause.kind, step.record) for step in found
    ]


def test_stopping_criteria_are_no_break_and_other_settings_are():
    """The one rule of `comparable`: what `compare` refuses is a break in the trend, what it takes is none."""
    protocol = {"version": 1, "processes": 3, "seed": 0, "seeds": [0, 1], "criteria": {"cold_time": {"seconds": 1}}}
    for key, other in {"processes": 5, "seed": 1, "criteria": {}, "seeds": [2, 3], "version": 2, "l2": 1}.items():
        records = [record_of(case_result("k", times={"cold_time": 1e-3}), protocol=one)
                   for one in (protocol, {**protocol, key: other})]  # fmt: skip
        try:
            refused = not compare(*records).cases
        except ResultsError:
            refused = True
        facts = lambda night, key=key, other=other: {  # noqa: E731
            "protocol": {**protocol, key: other} if night >= NIGHT else protocol
        }
        broken = [mark.kind for mark in trend(history(40, slower(), facts=facts)).breakpoints]
        assert (refused, broken) == ((True, ["protocol"]) if key in ("seeds", "version", "l2") else (False, [])), key


def test_another_host_is_the_cause_of_its_own_times():
    """Copies that take longer on another host were steps for the worse, unexplained, case by case."""
    own = {"metric": "end_to_end_time", "code": "", "board": from_night(NIGHT, "GPU-1", "GPU-2")}
    hosts = {"GPU-1": "a", "GPU-2": "b"}
    facts = lambda night: {  # noqa: E731
        "device": (device := "GPU-2" if night >= NIGHT else "GPU-1"),
        "boards": [{"uuid": device, "host": hosts[device]}],
    }
    rows = [row(series(seed=i, steps={NIGHT: 1.8 + i / 2}), case=f"k{i}[n=1]", **own) for i in range(6)]
    found = trend(history(40, *rows, facts=facts))
    assert found.steps and {"another host: its clock read the end to end time"} == {
        one.cause.words for one in found.steps
    }
    assert {"note"} == {one.gravity() for one in shifts(found.steps)}


FREE = {"version": 1, "processes": 3, "seed": 0, "criteria": {"cold_time": {"max_samples": 60, "precision": 0.004}}}
FEWER = {"cold_time": {"max_samples": 12, "precision": 0.004}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"criteria": FEWER}, "criteria cold_time max_samples 60 -> 12"),
        ({"processes": 5, "seed": 1}, "processes 3 -> 5, seed 0 -> 1"),
    ],
)
def test_a_free_setting_is_the_cause_of_what_all_cases_share(changes, words):
    """All cases that moved by 4 % with another `max_samples` were unexplained, and the gate closed."""
    facts = lambda night: {"protocol": {**FREE, **changes} if night >= NIGHT else FREE}  # noqa: E731
    words = f"the way of measuring changed ({words})"
    for code in ("c1", ""):
        rows = [slower(1.04, code=code), *still(step=1.04, code=code)]
        (shift,) = shifts(trend(history(40, *rows, facts=facts)).steps)
        assert (5, "protocol", words, "note") == (
            len(shift.steps), shift.first.cause.kind, shift.first.cause.words, shift.gravity())  # fmt: skip
    (step,) = steps_of_k(slower(), *still(), facts=facts)
    assert ("unexplained", (words,)) == (step.cause.kind, step.cause.also)  # no other case moved: it is only named
    assert "bad" == shifts([step])[0].gravity()
    (step,) = steps_of_k(slower(code=from_night(NIGHT, "c1", "c2")), *still(), facts=facts)
    assert "code" == step.cause.kind


@pytest.mark.parametrize("device", ["NVIDIA H200", "GPU-1"])
@pytest.mark.parametrize(
    ("board", "words"),
    [
        ({"uuid": "GPU-2"}, "another device of the same name"),
        ({"uuid": "GPU-1", "power_limit": 500.0}, "power_limit 700 -> 500"),
        ({"uuid": "GPU-2", "power_limit": 500.0}, "another device of the same name, power_limit 700 -> 500"),
    ],
)
def test_a_board_that_a_record_only_lists_is_named(device, board, words):
    """A unit that was swapped, or got another power limit, was unexplained where only the list of boards had it."""
    old = {"uuid": "GPU-1", "power_limit": 700.0}
    facts = lambda night: {"device": device, "boards": [{**old, **board} if night >= NIGHT else old]}  # noqa: E731
    rows = [slower(1.04), *still(step=1.04)]
    (shift,) = shifts(trend(history(40, *rows, facts=facts)).steps)
    assert (5, "device", words, "note") == (
        len(shift.steps), shift.first.cause.kind, shift.first.cause.words, shift.gravity())  # fmt: skip
