"""Series, what is set aside of them, and why they changed."""

import json

import numpy
import pytest

from prism_bench.analysis.trend import steps, trend
from prism_bench.analysis.trend.causes import findings, shifts
from prism_bench.analysis.trend.series import chosen, visiting
from prism_bench.errors import UsageError
from tests.analysis.trend.histories import SOFTWARE, history, points, row, series

NIGHT = 20


def from_night(night, before, after):
    return lambda at: after if at >= night else before


def the_step(*rows, facts=None, nights=40, **options):
    (step,) = steps(history(nights, *rows, facts=facts), **options)
    return step


def slower(factor=1.1, **columns):
    return row(series(steps={NIGHT: factor}), **columns)


def changed(**changes):
    return lambda night: changes if night >= NIGHT else {}


def test_a_step_tells_where_when_and_how_much():
    step = the_step(slower(), facts=changed(commit="bbbbbbbbbb"))
    assert ("h200", "cuda", "k[n=1]", "cold_time", "kernel", "") == tuple(vars(step.key).values())
    assert (pytest.approx(1e-3, rel=0.01), pytest.approx(1.1, rel=0.01)) == (step.before, step.ratio)
    assert ("h200/019.json.gz", "h200/020.json.gz", "2026-01-21T03:00:00") == (step.previous, step.record, step.since)
    assert (20, 20, True, False) == (step.nights, step.age, step.worse, step.recovered)
    assert ("aaaaaaaaaa", "bbbbbbbbbb") == step.commits


def test_a_step_that_was_taken_back_has_recovered():
    first, second = steps(history(60, row(series(60, steps={20: 1.1, 40: 1 / 1.1}))))
    assert ((True, True), (False, True)) == ((first.worse, first.recovered), (second.worse, second.recovered))
    assert (20, 40) == (first.nights, first.age)


def test_cases_metrics_subjects_machines_and_backends_are_series_of_their_own():
    both = [row(series(level=level), **columns) for level, columns in (
        (1e-3, {}), (2e-3, {"case": "k[n=2]"}), (3e-3, {"metric": "hot_time"}), (4e-3, {"subject": "peer:torch"})
    )]  # fmt: skip
    assert 4 == trend(history(40, *both)).series
    other = history(40, both[0], facts=lambda night: {"machine": "h200" if night % 2 else "b200"})
    assert 2 == trend(other).series
    assert () == trend(other).steps


CAUSES = {
    "code": ({"code": from_night(NIGHT, "c1", "c2")}, {}),
    "driver": ({}, {"software": {**SOFTWARE, "driver": "580.2"}}),
    "toolchain": ({}, {"software": {**SOFTWARE, "nvrtc": "13.2"}}),
    "protocol": ({}, {"protocol": {"version": 2}}),
    "device": ({}, {"device": "GPU-2"}),
    "clock": ({"clock": from_night(NIGHT, 1.98e9, 1.75e9)}, {}),
    "unexplained": ({}, {"commit": "bbbbbbbbbb"}),
    "library": ({"subject": "peer:torch"}, {"software": {**SOFTWARE, "torch": "2.12"}}),
    "sources": ({"code": ""}, {"commit": "bbbbbbbbbb"}),
}


@pytest.mark.parametrize("kind", CAUSES)
def test_a_cause_is_what_changed(kind):
    columns, facts = CAUSES[kind]
    assert kind == the_step(slower(**columns), facts=changed(**facts)).cause.kind


@pytest.mark.parametrize(
    ("columns", "facts"),
    [({}, {"protocol": {"version": 1, "processes": 5}}), ({}, {"software": {**SOFTWARE, "torch": "2.12"}}),
     ({"subject": "peer:torch", "code": from_night(NIGHT, "c1", "c2")}, {})],
    ids=["more processes", "another's library", "a peer has no code of ours"],
)  # fmt: skip
def test_what_cannot_matter_is_no_cause(columns, facts):
    assert "unexplained" == the_step(slower(**columns), facts=changed(**facts)).cause.kind


def test_versions_are_told():
    step = the_step(slower(), facts=changed(software={**SOFTWARE, "driver": "580.2"}))
    assert "driver 570.1 -> 580.2" == step.cause.words


def test_the_toolchain_that_changed_every_code_is_the_cause():
    code, toolchain = from_night(NIGHT, "c1", "c2"), changed(software={**SOFTWARE, "nvrtc": "13.2"})
    still = row(series(), case="still[n=1]", code=code)
    assert "toolchain" == the_step(slower(code=code), still, facts=toolchain).cause.kind


def test_one_code_that_changed_with_the_toolchain_is_the_cause_itself():
    others = [row(series(), case=f"other{i}[n=1]") for i in range(3)]
    code = from_night(NIGHT, "c1", "c2")
    step = the_step(slower(code=code), *others, facts=changed(software={**SOFTWARE, "nvrtc": "13.2"}))
    assert "code" == step.cause.kind


def built(compiler, source="s1", language="triton"):
    return json.dumps([language, compiler, source])


OLD = built("Triton 3.6.0")
BUILDS = {
    "same source": (OLD, built("Triton 3.9.0"),
                    ("toolchain", "same source, other machine code: Triton 3.6.0 -> 3.9.0")),
    "CUDA C++": (built("NVRTC 13.0", language="cuda"), built("NVRTC 13.1", language="cuda"),
                 ("toolchain", "same source, other machine code: NVRTC 13.0 -> 13.1")),
    "another compiler": (built("NVRTC 13.0"), built("nvcc 13.1"),
                         ("toolchain", "same source, other machine code: NVRTC 13.0 -> nvcc 13.1")),
    "a source that is not known": (OLD, built("Triton 3.9.0", None),
                                   ("toolchain", "other machine code: Triton 3.6.0 -> 3.9.0")),
    "both": (OLD, built("Triton 3.9.0", "s2"),
             ("code", "the source and the compiler changed: Triton 3.6.0 -> 3.9.0")),
    "the source alone": (OLD, built("Triton 3.6.0", "s2"), ("code", "the machine code changed")),
    "an older record": ("", built("Triton 3.9.0"), ("code", "the machine code changed")),
}  # fmt: skip


@pytest.mark.parametrize("builds", BUILDS)
def test_a_new_compiler_is_the_cause_of_new_code_of_the_same_source(builds):
    before, after, expected = BUILDS[builds]
    others = [row(series(), case=f"other{i}[n=1]") for i in range(3)]
    own = slower(code=from_night(NIGHT, "c1", "c2"), build=from_night(NIGHT, before, after), case="k:triton[n=1]")
    step = the_step(own, *others)
    assert expected == (step.cause.kind, step.cause.words)


def test_a_new_compiler_that_makes_the_same_code_is_no_cause():
    own = slower(build=from_night(NIGHT, OLD, built("Triton 3.9.0")))
    assert "unexplained" == the_step(own).cause.kind


def test_with_the_same_machine_code_a_new_driver_is_likelier_than_a_new_compiler():
    software = {**SOFTWARE, "nvrtc": "13.2", "driver": "580.2"}
    assert "driver" == the_step(slower(), facts=changed(software=software)).cause.kind


def test_what_else_changed_is_told_too():
    facts = changed(software={**SOFTWARE, "driver": "580.2"}, device="GPU-2")
    cause = the_step(slower(), facts=facts).cause
    assert ("device", ("driver 570.1 -> 580.2",)) == (cause.kind, cause.also)


def test_a_step_found_a_night_late_is_moved_to_its_cause():
    values = series(steps={NIGHT: 1.1})
    values[NIGHT] = values[NIGHT - 1]
    step = the_step(row(values), facts=changed(software={**SOFTWARE, "driver": "580.2"}))
    assert ("driver", "h200/020.json.gz") == (step.cause.kind, step.record)


def test_a_driver_change_is_a_breakpoint_and_the_series_goes_on():
    found = trend(history(40, row(series()), facts=changed(software={**SOFTWARE, "driver": "580.2"})))
    (mark,) = found.breakpoints
    assert ("driver", "h200/020.json.gz", "driver 570.1 -> 580.2") == (mark.kind, mark.record, mark.words)
    assert (1, ()) == (found.series, found.steps)


def test_what_a_record_doubts_is_set_aside_first():
    doubt = from_night(30, "", "a neighbour was busy")
    values = series(steps={30: 1.3})
    found = trend(history(40, row(values, doubt=doubt)))
    assert ((), {"a neighbour was busy": 10}) == (found.steps, found.aside)


def test_nights_at_another_clock_are_set_aside():
    slow = {5, 11, 12, 13, 25, 37, 38, 39}
    values = [value * (1.08 if night in slow else 1) for night, value in enumerate(series())]
    found = trend(history(40, row(values, clock=lambda night: 1.8e9 if night in slow else 1.98e9)))
    assert ((), [8]) == (found.steps, list(found.aside.values()))


def test_a_clock_that_stays_is_the_usual_one_after_half_a_window():
    at = lambda since: numpy.where(numpy.arange(40) >= since, 1.8e9, 1.98e9)  # noqa: E731
    assert [7, 0] == [int(visiting(at(since)).sum()) for since in (33, 32)]
    assert 0 == visiting(numpy.zeros(40)).sum()


def test_a_series_without_a_trusted_night_is_empty():
    assert () == trend(history(40, row(series(), doubt="invalid"))).steps


def test_a_floor_withholds_what_is_smaller():
    floors = {("h200", "cuda", "k[n=1]", "cold_time"): 0.12}
    assert [] == steps(history(40, slower()), floors)
    assert 1.1 == pytest.approx(the_step(slower(), floors={("other", *list(floors)[0][1:]): 0.12}).ratio, rel=0.01)


def test_missing_nights_are_no_trouble():
    values = series(steps={NIGHT: 1.1})
    assert "h200/021.json.gz" == the_step(lambda night: points(value=values[night]) if night % 2 else None).record


def many(count=5, **columns):
    return [row(series(seed=i, steps={NIGHT: 1.05 + i / 100}), case=f"k{i}[n=1]", **columns) for i in range(count)]


def test_steps_of_one_cause_are_one_finding():
    found = steps(history(40, *many(), facts=changed(software={**SOFTWARE, "driver": "580.2"})))
    (shift,) = shifts(found)
    (finding,) = findings([shift])
    assert (5, "bad", None, "cold_time") == (len(found), finding.gravity, finding.case, finding.metric)
    assert finding.message.startswith("5 cases (k0[n=1], k1[n=1], k2[n=1] and 2 more), cold time: worse by 5.")
    assert finding.message.endswith("(h200/020.json.gz): driver 570.1 -> 580.2")


def test_cases_that_read_a_slower_clock_are_told_together():
    clocks = [from_night(NIGHT, 1.98e9, slow) for slow in (1.75e9, 1.76e9)]
    rows = [slower(case=f"k{i}[n=1]", clock=clock) for i, clock in enumerate(clocks)]
    (shift,) = shifts(steps(history(40, *rows)))
    assert ("clock", 2) == (shift.first.cause.kind, len(shift.cases))


def test_better_and_worse_are_told_apart():
    better = row(series(steps={NIGHT: 0.9}), case="better[n=1]")
    assert ["bad", "note"] == [one.gravity for one in findings(shifts(steps(history(40, better, slower()))))]


def test_one_case_is_told_with_its_times_and_commits():
    (finding,) = findings(shifts([the_step(slower(), facts=changed(commit="bbbbbbbbbb"))]))
    assert finding.case == "k[n=1]"
    assert "k[n=1], cold time: worse by 1" in finding.message
    assert "(999 us -> 1.10 ms)" in finding.message
    assert finding.message.endswith("[aaaaaaaa..bbbbbbbb]")


@pytest.mark.parametrize(
    ("rows", "facts", "gravity"),
    [
        ([slower()], {}, "bad"),
        ([slower(subject="peer:torch")], {}, "note"),
        ([slower()], {"protocol": {"version": 2}}, "note"),
        ([slower()], {"device": "GPU-2"}, "note"),
        ([slower(clock=from_night(NIGHT, 1.98e9, 1.75e9))], {}, "note"),
        ([row(series(steps={NIGHT: 0.9}))], {}, "note"),
        ([row(series(steps={NIGHT: 1.1, 30: 0.9}))], {}, "note"),
    ],
    ids=["kernel", "peer", "protocol", "device", "clock", "better", "recovered"],
)
def test_only_a_kernel_that_is_worse_for_a_reason_of_its_own_is_bad(rows, facts, gravity):
    found = findings(shifts(steps(history(40, *rows, facts=changed(**facts)))))
    assert {gravity} == {finding.gravity for finding in found}


def test_an_old_step_is_history():
    (shift,) = shifts([the_step(slower())])
    assert ("bad", "note") == (shift.gravity(recent=20), shift.gravity(recent=19))


def test_a_part_of_a_history_can_be_chosen():
    cases = [row(series(), case=name) for name in ("a[n=1]", "a[n=2]", "a:fast[n=1]", "b[n=1]")]
    whole = history(40, *cases, facts=lambda night: {"machine": "h200" if night % 2 else "b200"})
    assert [3 * 2, 2, 2] == [trend(chosen(whole, [name])).series for name in ("a", "a:fast", "a[n=2]")]
    assert 4 == trend(chosen(whole, machines=["b200"])).series
    assert 8 == trend(chosen(whole, metrics=["cold_time"])).series
    for wrong in ({"names": ["softmix"]}, {"metrics": ["warm_time"]}, {"machines": ["a100"]}):
        with pytest.raises(UsageError, match="unknown"):
            chosen(whole, **wrong)


def test_an_empty_history_has_no_trend():
    assert (0, (), ()) == (lambda found: (found.series, found.steps, found.breakpoints))(trend(history(0)))
