"""Forms of a product: by a measured table, and what a rule would have cost."""

import pytest

from prism_bench.errors import UsageError
from prism_bench.workflows.tuning.crossover import ALWAYS, CASTS, FORMS, CrossoverRow, Picked, costs, pick
from tests.built_in import CATALOGUE

ERRORS = {"fp32": 1e-6, "tf32": 4e-4, "f16": 5e-4, "wmma": 5e-4}


def row(size, fp32, tf32, f16, wmma):
    seconds = {"fp32": fp32, "tf32": tf32, "f16": f16, "wmma": wmma}
    return CrossoverRow({"m": size, "k": size, "n": size}, seconds, 2.0, 1.0, ERRORS)


ROWS = (row(64, 4.0, 5.0, 3.0, 3.5), row(512, 20.0, 12.0, 8.0, 9.0))
SMALL, LARGE = (dict.fromkeys("mkn", size) for size in (64, 512))


@pytest.mark.parametrize(
    "shape, how, form, seconds",
    [
        (SMALL, {}, "fp32", 4.0),
        (SMALL, {"operands": "float16"}, "f16", 3.0),
        (LARGE, {}, "f16", 10.0),
        (LARGE, {"operands": "float16"}, "f16", 8.0),
        (LARGE, {"tolerance": 4.5e-4}, "tf32", 12.0),
        (LARGE, {"tolerance": 1e-5}, "fp32", 20.0),
        (LARGE, {"tolerance": 1e-5, "operands": "float16"}, "fp32", 21.0),
    ],
)
def test_the_quickest_form_that_is_exact_enough_conversion_counted(shape, how, form, seconds):
    found = pick(ROWS, shape, **how)
    assert (form, seconds) == (found.form, found.seconds)


def test_a_shape_that_was_not_measured_takes_the_nearest_one():
    assert "measured at 512 x 512 x 512" == pick(ROWS, {"m": 256, "k": 700, "n": 1000}).reason
    far = pick(ROWS, {"m": 16_384, "k": 512, "n": 512})
    assert Picked("fp32", None, "no shape within four times of it was measured") == far
    assert "fp32" == pick((), SMALL).form


def test_what_no_form_can_do_is_refused():
    with pytest.raises(UsageError, match="no form keeps a tolerance of 1e-09; the best one's error is 1e-06"):
        pick(ROWS, SMALL, tolerance=1e-9)
    with pytest.raises(UsageError, match="unknown dtype of operands 'float64'"):
        pick(ROWS, SMALL, operands="float64")


def test_a_rule_s_cost_is_its_time_over_the_quickest_form_s():
    rules = {"by size": lambda m, k, n: "fp32" if m < 100 else "wmma", **ALWAYS}
    found, fp32, *_ = costs(ROWS, rules)
    assert ("fp32", "wmma") == found.forms
    assert (1.0 * 11.0 / 10.0) ** 0.5 == pytest.approx(found.mean)
    assert (1.1, LARGE) == (pytest.approx(found.worst), found.worst_at)
    assert ("always fp32", 2.0) == (fp32.policy, pytest.approx(fp32.worst))


def test_every_form_is_a_kernel_of_the_catalogue():
    for kernel in (*FORMS.values(), CASTS):
        assert kernel == CATALOGUE.anywhere(f"{kernel}[m=3,n=5,k=7]").kernel
