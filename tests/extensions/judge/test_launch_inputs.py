"""Inputs of a launch: what is larger than a block repeats nothing, and anybody with the seed draws it again."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.backends.numpy_reference import open_backend
from prism_bench.catalogue import discover
from prism_bench.extensions.judge.referee.client import ContestantCode, RunnerClient, case_plan
from prism_bench.extensions.judge.referee.referee import launch_inputs, repeated_inputs
from prism_bench.extensions.judge.referee.session import Contestant
from prism_bench.extensions.judge.submission import judged_spec, read_submission
from prism_bench.run.verification import compare_outputs, passed
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import BLOCK, ONE_BY_ONE, Fill, InputArray, Runs, draw, uniform
from prism_bench.spec.workload import Workload
from tests.extensions.judge import near_runner
from tests.extensions.judge.fake_device import FakeDevice
from tests.extensions.judge.near_runner import NearRunner, session

any_parameters = near_runner.any_parameters  # a fixture
HERE = Path(__file__).parent
KEY = (1 << 64) - 5  # the sum with a place has more than 64 bits from the fifth on


def total(elements: int) -> Case:
    return Case(discover(HERE / "tasks").kernel("total"), Workload(n=elements), "S1")


def drawn(fill: Fill, elements: int, dtype: str = "float32") -> InputArray:
    return draw(fill, (elements,), dtype, np.random.default_rng(1), {})


def test_no_part_of_a_large_input_is_another_one_again() -> None:
    case = total(4 * BLOCK)
    parts = launch_inputs(case, 1)["x"].on(np).reshape(4, BLOCK)
    repeated = case.inputs(1)["x"].on(np).reshape(4, BLOCK)
    assert 1 == len({np.sort(part).tobytes() for part in repeated}), "which is what this is about"
    sums = np.sort(parts.sum(axis=1, dtype=np.float64))
    assert np.diff(sums).min() > 1
    values = np.unique(repeated[0])
    assert np.isin(parts, values).all(), "of the same distribution"
    share = np.array([np.unique(part).size for part in parts]) / values.size
    assert np.abs(share - (1 - np.exp(-1))).max() < 0.01, "drawn one by one, as often as it comes"


def test_a_seed_draws_the_same_again_and_another_one_others() -> None:
    case = total(2 * BLOCK + 3)
    once, again, other = (launch_inputs(case, seed)["x"] for seed in (1, 1, 2))
    assert np.array_equal(once.on(np), again.on(np))
    assert once.key not in (None, other.key)


def test_a_kernel_that_reads_one_block_for_all_is_right_without_and_wrong_with_it() -> None:
    case = total(2 * BLOCK)
    attack = judged_spec(case.spec, read_submission(HERE / "museum" / "sums_one_block.toml"))
    attacked = Case(attack, case.workload, "S1")
    assert [True, False] == [is_right(attacked, inputs) for inputs in (case.inputs(3), launch_inputs(case, 3))]


def is_right(case: Case, inputs: dict[str, InputArray]) -> bool:
    with EmulatorBackend().prepare(case, inputs) as runnable:
        runnable()
        return passed(compare_outputs(open_backend(), case, inputs, runnable.arrays(["y"]), 0))


@pytest.mark.parametrize("elements", [0, 1, 257, BLOCK])
def test_what_is_no_larger_than_a_block_is_as_the_fill_draws_it(elements: int) -> None:
    one = drawn(uniform(), elements)
    assert one.chosen(KEY) is one


def test_values_that_belong_together_stay_together() -> None:
    def ramp(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> np.ndarray:
        return np.arange(count)

    unknown = drawn(Fill(ramp, "a ramp"), 2 * BLOCK, "int32")
    assert unknown.chosen(KEY) is unknown
    pieces = drawn(Fill(ramp, "a ramp", runs=Runs(96, 32)), 3 * BLOCK, "int32").chosen(KEY).on(np).reshape(-1, 96)
    assert (np.diff(pieces, axis=1) == 1).all()
    assert {0} == set(pieces[:, 0] % 32)
    assert pieces.max() < BLOCK
    assert (BLOCK - 96) // 32 + 1 == Runs(96, 32).count, "the last one ends where the block does"


def test_an_input_that_repeats_a_block_is_named_among_what_was_not_judged() -> None:
    known = discover(HERE / "tasks").kernel("add")
    a, *others = known.arguments
    unknown = Fill(lambda rng, count, axes: rng.random(count), "unknown")
    spec = replace(known, arguments=(replace(a, fill=unknown), *others))
    cases = [Case(one, Workload(n=n), "S1") for one, n in ((spec, BLOCK), (known, 2 * BLOCK), (spec, 2 * BLOCK))]
    assert [[], [], ["a"]] == [repeated_inputs(case) for case in cases]
    device = FakeDevice()
    device.memory = np.zeros(32 * BLOCK, np.uint8)
    opened = session(device)
    opened.run(Contestant("honest", "submission", cases[2:], ContestantCode(b"honest", {"add": "add"})))
    assert ["a repeats a block" in words for words in opened.findings.unjudged] == [True]


def test_runs_that_are_longer_than_a_block_are_not_chosen() -> None:
    long = drawn(Fill(lambda rng, count, axes: rng.random(count), "long", runs=lambda axes: Runs(BLOCK + 1)), 2 * BLOCK)
    assert long.chosen(KEY) is long


@pytest.mark.parametrize("runs", [ONE_BY_ONE, Runs(48, 16), Runs(50257)])
def test_places_do_not_depend_on_how_many_are_chosen_at_a_time(runs: Runs) -> None:
    whole = runs.places(KEY, 0, 1000)
    assert np.array_equal(whole, np.concatenate([runs.places(KEY, 0, 7), runs.places(KEY, 7, 993)]))
    assert (0 <= whole).all()
    assert whole.max() < BLOCK


def test_every_large_input_of_the_catalogue_says_what_belongs_together() -> None:
    """Whatever its fill leaves open a kernel may know: where a block repeats, one of them is read for all."""
    timed = [case for case in discover().cases() if case.label in ("S0", "S1", "S2")]
    assert len(timed) > 500
    assert {} == {case.name: names for case in timed if (names := repeated_inputs(case))}


def test_a_runner_lays_out_what_the_referee_compares_with() -> None:
    spec, device = discover(HERE / "tasks").kernel("add"), FakeDevice()
    case, device.memory = Case(spec, Workload(n=2 * BLOCK), "S1"), np.zeros(32 * BLOCK, np.uint8)
    plan, _ = case_plan(case, Device(), ContestantCode(b"honest", {"add": "add"}))
    inputs = launch_inputs(case, 5)
    with RunnerClient(NearRunner(device), 9.0) as client:
        client.load(plan, (b"honest",))
        client.give(inputs)
        client.launch(1)
        assert np.array_equal(client.outputs()["c"], inputs["a"].on(np) + inputs["b"].on(np))
