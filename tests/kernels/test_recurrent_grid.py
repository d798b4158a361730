"""Sequences of recurrent cells on a grid that keeps the weights: which shapes take it, its launches, its memory."""

import pytest

from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Launch, Zero
from prism_bench.spec.workload import Workload
from tests.built_in import CATALOGUE

HOPPER = Device(sm_count=132, max_shared_bytes=227 << 10, compute_capability=90)
ADA = Device(sm_count=142, max_shared_bytes=99 << 10, compute_capability=89)
CELLS = ("gru_cell:sequence", "lstm_cell:sequence")
BOTH = pytest.mark.parametrize("kernel", CELLS)


def sequence(kernel, **sizes):
    """The case of these sizes, 512 steps, 64 samples and 1024 inputs and units where they name no others."""
    usual = {"steps": 512, "batch": 64, "inputs": 1024, "hidden": 1024}
    return Case(CATALOGUE.edges_of(kernel)[0].spec, Workload(**(usual | sizes)), "edge")


def entries(case, device=HOPPER):
    return [step.entry for step in case.plan.steps(device) if isinstance(step, Launch)]


@BOTH
def test_x_is_multiplied_before_each_walk(kernel):
    gates = 3 if kernel.startswith("gru") else 4
    steps = sequence(kernel, steps=300).plan.steps(HOPPER)
    assert steps[0] == Zero("counters")
    walk, product = f"{kernel.partition('_')[0]}_grid", f"recurrent_inputs<Large, {gates}>"
    assert [step.entry for step in steps[1:]] == [product, walk] * 3
    assert [step.grid for step in steps[1:]] == [64 * gates * 4, 128] * 2 + [22 * gates * 4, 128]
    assert [step.cooperative for step in steps[1:]] == [False, True] * 3
    assert max(step.shared for step in steps[1:]) <= HOPPER.max_shared_bytes


@BOTH
def test_memory_for_the_product_of_x_does_not_grow_with_the_steps(kernel):
    short, long = (sequence(kernel, steps=steps).axes["by_x_rows"] for steps in (128, 100_000))
    assert short == long == 128 * 64


@BOTH
@pytest.mark.parametrize(
    "sizes", [{"batch": 65}, {"batch": 0}, {"hidden": 1032}, {"hidden": 1040}, {"inputs": 64, "hidden": 128}]
)
def test_other_shapes_take_neither_the_grid_nor_its_memory(kernel, sizes):
    case = sequence(kernel, **sizes)
    assert not any("grid" in entry for entry in entries(case))
    assert case.axes["by_x_rows"] == case.axes["grid_states"] == case.axes["counter_words"] == 0


@BOTH
def test_a_device_that_does_not_hold_all_blocks_has_small_tiles(kernel):
    few = Device(sm_count=127, max_shared_bytes=227 << 10, compute_capability=90)
    assert all("sequence" in entry for device in (few, ADA) for entry in entries(sequence(kernel), device))
