"""The gate against the last record that compares: a kernel that became slower since then is never well."""

from dataclasses import replace

import pytest

from prism_bench.analysis.gate.checks import GateCheck, GatePart, gate, last_part, once
from prism_bench.analysis.run_analysis import read
from prism_bench.record import store
from tests.analysis.gate.test_outcome import PATH
from tests.analysis.measured_pairs import measured, records
from tests.report.synthetic import MACHINE, PROTOCOL, case_result, measurement, record_of


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def asked(tmp_path):
    """A function that keeps records, one a day, and asks about the last of them."""

    def ask(*records):
        days = [replace(one, created=f"2026-11-{day:02d}T03:00:00") for day, one in enumerate(records, 1)]
        for one in days:
            store.save(one, store.path_for(one, tmp_path))
        return last_part(read(days[-1]), store.read_history(tmp_path), tmp_path)

    return ask


def timed(factor=1.0, kernel="softmax", processes=3, **changes):
    """A record of eight cases, of which the kernel's takes `factor` as long."""
    names = [kernel, *(f"k{number}" for number in range(7))]
    times = {name: 1e-5 * (factor if name == kernel else 1.0) for name in names}
    cases = [
        case_result(name, measurements=(measurement("cold_time", seconds, processes=processes, noise=0.004),))
        for name, seconds in times.items()
    ]
    return record_of(*cases, **changes)


def grave(part):
    return {(check.case, check.answer) for check in part.checks if check.grave}


@pytest.mark.parametrize("earlier", [1, 2, 5])
def test_a_kernel_that_takes_twice_as_long_as_last_time_is_not_well(asked, earlier):
    """With few earlier records the trend is silent, and without a baseline nothing else asked."""
    part = asked(*[timed()] * earlier, timed(2.0))
    assert {("softmax[n=100]", "slower")} == grave(part)
    assert 1 == gate(read(timed(2.0)), PATH, [part]).exit_code


def test_a_smaller_change_is_judged_by_the_statistics(asked):
    assert {("softmax[n=100]", "slower")} == grave(asked(timed(), timed(1.15)))
    assert set() == grave(asked(timed(), timed()))


def test_a_single_process_hides_no_factor_of_two(asked):
    part = asked(timed(processes=1), timed(2.0, processes=1))
    assert {("softmax[n=100]", "degraded")} == grave(part)


def test_identical_code_hides_no_factor_of_two(asked):
    same = {"sass": "abc", "launches": 1}
    old, new = (replace(one, cases=tuple(replace(case, code=same) for case in one.cases))
                for one in (timed(), timed(2.0)))  # fmt: skip
    assert ("softmax[n=100]", "degraded") in grave(asked(old, new))


def test_every_metric_of_the_kernel_is_asked(asked):
    records = [record_of(case_result("k", times={"cold_time": 1e-5, "hot_time": hot})) for hot in (2e-6, 5e-6)]
    (check,) = [check for check in asked(*records).checks if check.grave]
    assert ("k[n=100]", "hot_time", 2.5) == (check.case, check.metric, pytest.approx(check.ratio))
    assert check.against == records[0].commit


def test_the_last_record_is_asked_and_not_an_older_one(asked):
    assert set() == grave(asked(timed(), timed(2.0), timed(2.0)))


OTHERS = [
    {"protocol": {**PROTOCOL, "version": 2}}, {"backend": "emulator"}, {"machine": {**MACHINE, "id": "h100"}},
    {"machine": {**MACHINE, "device": "NVIDIA H100"}},
]  # fmt: skip


@pytest.mark.parametrize("changes", OTHERS)
def test_what_does_not_compare_is_passed_by(asked, changes):
    """The newest record that compares is asked, whatever lies between."""
    assert {("softmax[n=100]", "slower")} == grave(asked(timed(), timed(**changes), timed(2.0)))


@pytest.mark.parametrize("changes", OTHERS)
def test_what_does_not_compare_is_not_asked(asked, changes):
    assert "no earlier record of this machine, backend and protocol" == asked(timed(**changes), timed(2.0)).silent


def test_stopping_criteria_are_no_obstacle(asked):
    protocol = {**PROTOCOL, "criteria": {"cold_time": {"seconds": 1}}, "processes": 5}
    assert {("softmax[n=100]", "slower")} == grave(asked(timed(), timed(2.0, protocol=protocol)))


def test_a_case_that_the_last_record_lacks_is_compared_with_the_one_before(asked):
    whole, cut = timed(), timed(complete=False)
    cut = replace(cut, cases=cut.cases[1:])
    part = asked(whole, cut, timed(2.0))
    assert {("softmax[n=100]", "slower")} == grave(part)
    assert 8 == len({check.case for check in part.checks if check.case})


def test_a_case_that_no_record_has_is_unmeasured(asked):
    part = asked(timed(kernel="other"), timed())
    assert ["softmax[n=100]"] == [check.case for check in part.checks if check.answer == "unmeasured"]


def test_without_an_earlier_record_the_part_is_silent(asked):
    part = asked(timed())
    assert ((), "no earlier record of this machine, backend and protocol") == (part.checks, part.silent)
    skipped = asked(timed(), record_of(case_result("softmax", status="skipped", reason="no memory")))
    assert ((), "no case of this record has a time to compare") == (skipped.checks, skipped.silent)


def test_what_the_baseline_found_is_not_told_twice(asked):
    last = asked(timed(), timed(2.0))
    baseline = GatePart("baseline", (GateCheck("softmax[n=100]", "cold_time", "slower", "bad"),))
    assert set() == grave(once(last, [baseline]))
    assert grave(last) == grave(once(last, [GatePart("baseline")]))


def of_code(*seconds, seed):
    """A record with a case of known machine code for each time."""
    cases = [
        case_result(f"k{n}", code={"sass": f"s{n}", "launches": 1},
                    measurements=(measurement("cold_time", one, noise=0.002, seed=seed + n),))
        for n, one in enumerate(seconds)
    ]  # fmt: skip
    return record_of(*cases)


def test_the_control_of_an_older_record_is_that_of_all_its_cases(asked):
    """A case that only an older record has is not well where that record's control shows another machine."""
    old, new = records([*[1.05] * 9, *[1.0] * 291], sass=("aa", "aa"))
    slow, fast = (case_result("q", code={"sass": sass, "launches": 1},
                              measurements=(measurement("cold_time", seconds, noise=0.003, seed=5),))
                  for sass, seconds in (("q1", 2e-5), ("q2", 1e-5)))  # fmt: skip
    older = replace(old, commit="a" * 40, cases=(*old.cases, slow))
    part = asked(older, replace(new, commit="b" * 40), replace(new, cases=(*new.cases, fast)))
    assert {(None, "control", "a" * 40)} == {(one.case, one.answer, one.against) for one in part.checks if one.grave}
    assert {"b" * 40} == {one.against for one in part.checks if one.answer == "same"}
    assert 301 == len([one for one in part.checks if one.case])


def test_a_host_that_launches_later_makes_no_kernel_degraded(asked):
    """Every launch takes 4 us longer, which is more than half of the shortest cases."""
    seconds = [4e-6 * 1.4**place for place in range(14)]
    part = asked(of_code(*seconds, seed=1), of_code(*(one + 4e-6 for one in seconds), seed=90))
    assert set() == grave(part)
    assert "shift" in {check.answer for check in part.checks}


def test_a_device_that_lost_half_its_rate_is_not_excused(asked):
    seconds = [4e-6 * 1.4**place for place in range(14)]
    part = asked(of_code(*seconds, seed=1), of_code(*(2 * one for one in seconds), seed=90))
    assert {"degraded"} == {answer for _, answer in grave(part)}


def noisy(last=1.0, runs=5):
    """Records of 24 cases whose processes differ by 1 %; the last run's first case takes `last` as long."""

    def case_of(number, day, ratio):
        found = measured(ratio, processes=3, spread=0.01, seed=100 * day + number)
        return case_result(f"k{number}", code={"sass": "aa"}, measurements=(found,))

    earlier = [record_of(*(case_of(number, day, 1.0) for number in range(24))) for day in range(runs)]
    changed = [replace(case_of(number, 50, last if number == 0 else 1.0), code={"sass": "bb"}) for number in range(24)]
    return [*earlier, record_of(*changed)]


def test_three_processes_find_ten_percent_by_the_case_s_own_history(asked):
    """Processes differ by 1 %: three of them alone prove nothing."""
    assert set() == grave(asked(*noisy(1.10, runs=1)))
    assert {("k0[n=100]", "slower")} == grave(asked(*noisy(1.10)))
    assert set() == grave(asked(*noisy()))


def test_few_processes_without_a_history_are_asked_for_more(asked):
    (note,) = [check for check in asked(*noisy(1.10, runs=1)).checks if check.answer == "undersampled"]
    assert "note" == note.gravity and "k0[n=100]" in note.cases
    assert "measure with --processes 5" in note.message and "5 earlier runs" in note.message
    assert not [check for check in asked(*noisy(1.10)).checks if check.answer == "undersampled"]


def test_a_record_that_was_judged_while_it_grew_wants_as_much_evidence_later(asked):
    """A nightly run that may judge four times needs smaller p-values, and so does whatever judges its record again."""
    *earlier, last = noisy(1.055)
    asked_again = replace(last, protocol={**last.protocol, "looks": 10_000})
    assert {("k0[n=100]", "slower")} == grave(asked(*earlier, last))
    assert set() == grave(asked(*earlier, asked_again))
