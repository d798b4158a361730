"""Which cases are measured: the control, the roles, and what refuses the shortcut."""

from dataclasses import replace

import pytest

from prism_bench.analysis.compare.comparison import compare, comparison_findings, unmeasured, with_selection
from prism_bench.analysis.compare.noise import ENOUGH
from prism_bench.analysis.compare.selection import (
    BOTTLENECKS,
    EACH,
    CaseWork,
    SelectedCase,
    Selection,
    clock_shift,
    control_sample,
)
from tests.analysis.measured_pairs import case, measured, records
from tests.report.synthetic import record_of

MEMORY, COMPUTE, LATENCY = CaseWork("m", 10**8, 10**8), CaseWork("c", 10**7, 10**10), CaseWork("l", 4000, 1000)


def catalogue(count=60):
    """Cases of the three bottlenecks in turn, two of each kernel."""
    kinds = MEMORY, COMPUTE, LATENCY
    return {f"k{i // 2}[n={i}]": replace(kinds[i // 2 % 3], kernel=f"k{i // 2}") for i in range(count)}


@pytest.mark.parametrize(
    ("work", "bottleneck"),
    [(MEMORY, "memory"), (COMPUTE, "compute"), (LATENCY, "latency"), (CaseWork("x", 10**10, 1), None),
     (CaseWork("x", 10**7, 10**8), None), (CaseWork("x", 0, 0), "latency"), (CaseWork("x", 10**8, 10**12), None)],
)  # fmt: skip
def test_declared_work_names_the_bottleneck(work, bottleneck):
    assert bottleneck == work.bottleneck


def test_the_control_covers_every_bottleneck_with_one_case_a_kernel():
    cases = catalogue()
    chosen = control_sample(cases)
    assert dict.fromkeys(BOTTLENECKS, EACH) == {
        kind: sum(cases[name].bottleneck == kind for name in chosen) for kind in BOTTLENECKS
    }
    assert len(chosen) == len({cases[name].kernel for name in chosen}) >= ENOUGH


def test_the_control_does_not_depend_on_the_order_or_on_cases_that_are_not_in_it():
    cases = catalogue()
    chosen = set(control_sample(cases))
    assert chosen == set(control_sample(dict(reversed(cases.items()))))
    other = next(name for name in cases if name not in chosen)
    assert chosen == set(control_sample({name: work for name, work in cases.items() if name != other}))


def test_a_control_case_that_changes_is_replaced_alone():
    cases = catalogue()
    chosen = control_sample(cases)
    left = control_sample({name: work for name, work in cases.items() if name != chosen[0]})
    assert (len(chosen), len(chosen) - 1) == (len(left), len({*chosen} & {*left}))


def test_other_cases_make_a_control_where_a_bottleneck_has_too_few():
    few = {f"k{i}[n=1]": replace(LATENCY, kernel=f"k{i}") for i in range(7)}
    unclear = {f"u{i}[n=1]": CaseWork(f"u{i}", 10**10, 1) for i in range(7)}
    chosen = control_sample({**few, **unclear})
    assert {*few} <= {*chosen}
    assert EACH * len(BOTTLENECKS) == len(chosen)
    assert () == control_sample({})


def selection(*cases, **facts):
    return Selection("machine code", tuple(cases), **facts)


SAME, CHANGED = SelectedCase("same[n=1]", "same machine code"), SelectedCase("k0[n=100]", "measured", ("code",))


def test_cases_that_were_not_measured_are_reported():
    a, b = records([1.1])
    found = with_selection(compare(a, b, changed=["k0[n=100]"]), selection(CHANGED, SAME), (a, b))
    assert {"k0[n=100]": "slower", "same[n=1]": "same machine code"} == {one.case: one.verdict for one in found.cases}
    assert (1, 1) == (found.exit_code, found.counts()["same machine code"])


def test_nothing_changed_is_an_answer_without_a_measurement():
    found = unmeasured(("A", "B"), selection(SAME), ())
    assert (0, True) == (found.exit_code, found.answered)


@pytest.mark.parametrize(("broken", "code", "side"), [("b", 1, "B"), ("a", 0, "A")])
def test_a_side_that_does_not_build_is_named_and_the_others_are_judged(broken, code, side):
    a, b = records([1.0])
    failing = SelectedCase("bad[n=1]", "does not build", problem="bad.cu(3): error", broken=broken)
    found = with_selection(compare(a, b), selection(CHANGED, failing), (a, b))
    reasons = {one.case: one.reason for one in found.cases}
    assert f"{side} does not build: bad.cu(3): error" == reasons["bad[n=1]"]
    assert ("same", code) == (found.cases[0].verdict, found.exit_code)


def test_another_driver_refuses_the_shortcut():
    a, b = records([1.0])
    b = replace(b, software={**b.software, "driver": "999"})
    found = with_selection(compare(a, b), selection(CHANGED, SAME), (a, b))
    assert 3 == found.exit_code
    (doubt,) = found.doubts
    assert "999 between the sides: 1 case without a measurement" in doubt
    assert ["untrusted"] == [one.gravity for one in comparison_findings(found) if one.kind == "selection"]


def test_another_unit_refuses_the_shortcut():
    a, b = records([1.0])
    units = [replace(one, machine={**one.machine, "uuid": unit}) for one, unit in ((a, "GPU-1"), (b, "GPU-2"))]
    found = with_selection(compare(*units), selection(CHANGED, SAME), tuple(units))
    assert (3, True) == (found.exit_code, "another unit" in found.doubts[0])


def test_another_clock_refuses_the_shortcut_and_a_boost_does_not():
    for clock, expected in ((1.7e9, 3), (1.96e9, 0)):
        a = record_of(*(case(f"k{i}", seed=i) for i in range(9)))
        b = record_of(*(case(f"k{i}", 1.98e9 / clock, seed=50 + i, clock=clock) for i in range(9)))
        found = with_selection(compare(a, b), selection(SAME), (a, b))
        assert expected == found.exit_code, found.doubts


def test_all_measured_leaves_no_doubt():
    a, b = records([1.0])
    b = replace(b, software={**b.software, "driver": "999"})
    assert () == with_selection(compare(a, b), selection(CHANGED), (a, b)).doubts


def test_the_shift_of_the_clock_is_the_median_of_the_pairs():
    assert clock_shift([(measured(clock=1e9), measured(clock=1.1e9))]) == pytest.approx(0.1)
    assert clock_shift([(measured(clock=None), measured())]) is None
