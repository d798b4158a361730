"""The form that fuses nothing: a launch for each stage, and for each function before a sum."""

import importlib

import pytest

from prism_bench.extensions.fusion import Map, Reduce, names
from prism_bench.extensions.fusion.specification import separated
from prism_bench.spec.case import Device
from prism_bench.spec.kernel import Launch
from tests.built_in import CATALOGUE
from tests.extensions.fusion import toys

x, y, total, n = names("x y total n")


def steps(program):
    return [one.stage for one in separated(program, "toy").launches]


def test_what_a_sum_is_taken_of_stands_alone():
    assert ["total_terms", "total", "most_terms", "most", "summed", "a", "b"] == steps(toys.SUMS)
    assert ["summed_terms", "summed", "a", "b"] == steps(toys.COLUMNS)
    assert ["a", "b"] == steps(toys.MAPS)


def test_what_stands_between_launches_is_no_output():
    assert {"total_terms": ("n",), "most_terms": ("n",)} == separated(toys.SUMS, "toy").between
    assert {"summed_terms": ("rows",), "summed": ("cols",)} == separated(toys.COLUMNS, "toy").between


def test_numbers_that_follow_from_sums_take_one_thread():
    found = separated(toys.SUMS, "toy")
    step = next(one for one in found.launches if one.stage == "a")
    assert "*a = T(-1.0) * *most * T(2.0) + *total;" in step.code.kernels
    assert ("most", "total", "a") == step.passed


@pytest.mark.parametrize("name", ["PRODUCT", "ROWS", "NEIGHBOURS"])
def test_what_comes_in_one_launch_alone_has_no_such_form(name):
    assert separated(getattr(toys, name), "toy") is None


def test_a_single_stage_and_one_that_asks_the_host_have_none():
    assert separated(toys.program([Map("a", x + y)], ("a",)), "toy") is None
    assert separated(toys.program([Reduce("total", "sum", x), Map("a", total / n)], ("a",)), "toy") is None
    chosen = toys.program([Map("a", x), Reduce("total", ("sum", "max"), names("a")[0])], ("total",))
    assert separated(chosen, "toy") is None


@pytest.mark.parametrize(
    ("kernel", "launches"),
    [("fused_kl_complexity", 2), ("fused_accuracy_pipeline", 3), ("fused_belief_update", 3), ("fused_free_energy", 6)],
)
def test_fused_kernels_have_a_chain_from_separate_launches(kernel, launches):
    spec = CATALOGUE.kernels[kernel]
    (chain,) = spec.chains
    assert (kernel, {"baseline": "separate", "full": None}) == (chain.name, chain.stages)
    case = CATALOGUE.cases([f"{kernel}:separate"], ("S0",))[0]
    plan = case.plan.steps(Device())
    assert launches == len(plan) == sum(isinstance(step, Launch) for step in plan)
    assert set(chain.between) <= {array.name for array in case.spec.arrays if array.scratch}


def test_launches_put_together_ask_for_what_any_of_them_asks_for():
    together = importlib.import_module("prism_bench_catalogue.include.launches.host_plan").together
    plan = together(lambda m: ("first", m), lambda n, block=256: ("second", n, block))
    assert (("first", 1), ("second", 2, 256)) == plan(m=1, n=2)
    assert (("first", 1), ("second", 2, 64)) == plan(m=1, n=2, block=64)
