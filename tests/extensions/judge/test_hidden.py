"""Sizes and changes of inputs that a judgement draws."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism_bench.catalogue import discover
from prism_bench.catalogue.catalogue import edge_cases, timed_cases
from prism_bench.extensions.judge.task import changed_inputs, drawn_secret, hidden_cases, is_no_size
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec, Rule
from prism_bench.spec.workload import Workload

TASK = discover(Path(__file__).parent / "tasks").kernel("add")


def known(spec: KernelSpec, *sizes: int) -> list[Case]:
    return [Case(spec, Workload(n=size), "edge") for size in sizes]


@pytest.mark.parametrize(
    ("sizes", "step", "power"), [((257, 600), 1, False), ((48, 480), 48, False), ((16, 4096), 16, True)]
)
def test_a_drawn_size_has_the_form_of_those_that_are_known(sizes: tuple[int, ...], step: int, power: bool) -> None:
    drawn = [case.workload["n"] for secret in range(20) for case in hidden_cases(TASK, known(TASK, *sizes), secret)]
    assert len(set(drawn)) > 5
    assert all(sizes[0] <= n <= sizes[-1] and n % step == 0 and n not in sizes for n in drawn)
    assert not power or all(n & (n - 1) == 0 for n in drawn)


def test_a_size_that_breaks_a_rule_of_the_task_is_not_drawn() -> None:
    spec = replace(TASK, rules=(Rule("n is no multiple of 3", lambda n: n % 3 != 0),))
    assert all(
        case.workload["n"] % 3 for secret in range(9) for case in hidden_cases(spec, known(spec, 257, 601), secret)
    )


def test_a_size_is_none_of_the_task_where_its_own_kernel_misses_the_tolerance_now_and_then() -> None:
    """Another right kernel may miss it with the inputs of a judgement that this one passes."""
    case = known(TASK, 300)[0]

    def sometimes_another(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a + b + (a[0] > 1.5)  # of 7 in 100 draws

    assert not is_no_size(TASK, case, (1, 2))
    assert is_no_size(replace(TASK, reference=lambda a, b: a + b + 1), case, (1, 2))
    assert is_no_size(replace(TASK, reference=sometimes_another), case, (1, 2))


def test_a_secret_cannot_be_tried_out_and_survives_every_reader_of_json() -> None:
    assert 2**45 < max(drawn_secret() for _ in range(64)) < 2**53


def test_a_task_of_one_size_has_no_other() -> None:
    assert hidden_cases(TASK, known(TASK, 600), 1) == []
    assert hidden_cases(TASK, [], 1) == []


def test_one_element_is_changed_at_a_place_that_the_secret_draws() -> None:
    case = timed_cases(TASK, None)[0]
    inputs, places = case.inputs(0), set()
    for secret in range(9):
        changed = changed_inputs(case, inputs, secret)
        assert changed
        differing = [(name, *np.flatnonzero(changed[name].on(np) != inputs[name].on(np))) for name in inputs]
        (one,) = [place for place in differing if len(place) > 1]
        assert len(one) == 2
        places.add(one)
    assert len(places) > 5
    subnormal = next(one for one in edge_cases(TASK, None) if one.edge)
    assert changed_inputs(subnormal, subnormal.inputs(0), 1) is None, "its own fills are what the edge is about"
