"""The gate against a baseline: slower, same, unmeasured; never met without one."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.analysis.gate.budgets import Promises, baseline_of, slowdowns
from prism_bench.analysis.gate.checks import Earlier, baseline_part, gate
from prism_bench.analysis.run_analysis import findings, read
from prism_bench.errors import ResultsError
from prism_bench.record import store
from tests.analysis.gate.test_against_last import noisy
from tests.report.synthetic import case_result, measurement, record_of

PATH = Path("new.json.gz")


def timed(kernel, seconds, seed, **changes):
    """A case of five processes with the noise of a real one."""
    measured = measurement("cold_time", seconds, processes=5, noise=0.004, seed=seed)
    return case_result(kernel, measurements=(measured,), code={"sass": f"{kernel}{seconds}"}, **changes)


def recorded(seed, **seconds):
    return record_of(*(timed(kernel, value, seed) for kernel, value in seconds.items()))


OLD = recorded(1, softmax=5e-5, matmul=7e-5)


def judged(new, old=OLD, runs=None, earlier=(), **changes):
    """The part on `new`, with `old` as the baseline and its record kept below `runs`."""
    baseline = replace(baseline_of(old, "old.json.gz"), **changes)
    if runs:
        store.save(old, runs / old.machine["id"] / "old.json.gz")
    reading = read(new)
    slow = tuple(slowdowns(new, baseline=baseline))
    told, promises = tuple(findings(new, (), slow)), Promises(baseline=baseline)
    reading = replace(reading, slowdowns=slow, findings=told, promises=promises)
    return baseline_part(reading, PATH, runs or Path("nowhere"), earlier=earlier)


def answers(part):
    return {(check.case.split("[")[0], check.answer) for check in part.checks if check.case}


def test_without_a_baseline_nothing_is_met():
    part = baseline_part(read(OLD), PATH, Path("nowhere"))
    assert ((), False) == (part.checks, part.answered)
    assert "no baseline for NVIDIA H200: 'prism-bench check --accept' makes one" == part.silent


def test_the_baseline_itself_is_not_compared_with_itself():
    part = judged(OLD, record="reports/runs/nvidia-h200/new.json.gz")
    assert ((), "this record is the baseline itself") == (part.checks, part.silent)


def test_a_slower_case_shuts_the_gate_and_is_told_once(tmp_path):
    part = judged(recorded(2, softmax=9e-5, matmul=7e-5), runs=tmp_path)
    assert ("softmax", "slower") in answers(part) and ("softmax", "degraded") not in answers(part)
    (slower,) = [check for check in part.checks if check.gravity == "bad"]
    assert slower.ratio == pytest.approx(1.8, rel=0.05)
    assert "cold time 90" in slower.message and "in the baseline" in slower.message
    assert OLD.commit == slower.against
    assert 1 == gate(read(OLD), PATH, [part]).exit_code


def test_earlier_runs_show_what_the_baseline_s_three_processes_do_not(tmp_path):
    *earlier, last = noisy(1.12, runs=6)
    assert ("k0", "inconclusive") in answers(judged(last, earlier[0], tmp_path))
    known = [Earlier(record, "", f"run-{place}") for place, record in enumerate(earlier[::-1])]
    assert ("k0", "slower") in answers(judged(last, earlier[0], tmp_path, known))


def test_the_same_is_well(tmp_path):
    part = judged(recorded(2, softmax=5e-5, matmul=7e-5), runs=tmp_path)
    assert not [check for check in part.checks if check.gravity in ("bad", "untrusted")]
    assert {("softmax", "steady"), ("matmul", "steady")} < answers(part)


def alike(seed, ratio=1.0, **changes):
    """Twelve cases of code that never changes, all of them as much slower."""
    cases = [timed(f"k{place}", 5e-5 * ratio, seed + place) for place in range(12)]
    return record_of(*(replace(case, code={"sass": case.kernel}) for case in cases), **changes)


def test_a_driver_that_makes_all_code_slower_shuts_the_gate(tmp_path):
    software = {**record_of().software, "driver": "600.1"}
    part = judged(alike(50, 1.05, software=software), alike(1), tmp_path)
    (bad,) = [check for check in part.checks if check.gravity == "bad"]
    assert (None, "shift") == (bad.case, bad.answer)
    assert "600.1" in bad.message


def test_a_case_of_identical_code_that_stands_out_is_told_once(tmp_path):
    new = alike(50)
    new = replace(new, cases=(replace(timed("k0", 7e-5, 3), code={"sass": "k0"}), *new.cases[1:]))
    part = judged(new, alike(1), tmp_path)
    (told,) = [check for check in part.checks if (check.case or "").startswith("k0[") and check.answer != "steady"]
    assert ("inconclusive", "note") == (told.answer, told.gravity)
    assert "identical machine code, and by its times alone slower" in told.message


def test_a_case_that_is_gone_is_unmeasured(tmp_path):
    for runs in (None, tmp_path):
        assert ("matmul", "unmeasured") in answers(judged(recorded(2, softmax=5e-5), runs=runs))


def test_a_case_that_went_wrong_is_the_runs_own_concern(tmp_path):
    wrong = record_of(case_result("softmax", status="wrong", reason="y[0] is 2"), timed("matmul", 7e-5, 2))
    part = judged(wrong, runs=tmp_path)
    assert ("softmax", "unmeasured") in answers(part)
    assert not [check for check in part.checks if check.gravity == "bad"]


def test_without_the_record_the_medians_are_asked(tmp_path):
    part = judged(recorded(2, softmax=9e-5, matmul=7e-5))
    assert {("softmax", "degraded"), ("matmul", "steady")} == answers(part)
    assert "the baseline's record old.json.gz is not kept here; only its medians were compared" == part.silent


def test_a_degraded_case_has_the_ratio_that_its_message_has(tmp_path):
    part = judged(recorded(2, softmax=9e-5, matmul=7e-5))
    (found,) = [check for check in part.checks if check.answer == "degraded"]
    assert f"median over the baseline's {found.ratio:.3g}, the rule is at most 1.5" in found.message


def test_a_broken_record_of_the_baseline_is_named(tmp_path):
    place = tmp_path / OLD.machine["id"] / "old.json.gz"
    place.parent.mkdir()
    place.write_bytes(b"\x1f\x8bcut")
    reading = replace(read(OLD), promises=Promises(baseline=baseline_of(OLD, "old.json.gz")))
    assert f"the baseline's record cannot be read ({place}: " in baseline_part(reading, PATH, tmp_path).silent


def test_what_does_not_compare_is_refused_with_the_place_and_the_rule(tmp_path):
    other = replace(OLD, protocol={**OLD.protocol, "l2_cleared": False})
    with pytest.raises(ResultsError, match="only records of one backend, device and protocol can be compared"):
        judged(recorded(2, softmax=5e-5), other, tmp_path)
