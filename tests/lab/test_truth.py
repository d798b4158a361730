"""The comparison of two backends, on backends whose difference is known."""

import pytest
from lab.emulator_truth import COLUMNS, differences, kernels, recorded, recorded_row, row, split, summary

from prism_bench.backends import open_backend
from prism_bench.backends.numpy_reference import NumpyBackend, NumpyRunnable
from prism_bench.compilation.languages import language
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.kernel import CUDA
from tests.built_in import CATALOGUE


class SkewedRunnable(NumpyRunnable):
    skew = 0.0

    def arrays(self, names):
        found = {name: array.copy() for name, array in super().arrays(names).items()}
        for array in found.values():
            array.reshape(-1)[-1:] *= array.dtype.type(1 + self.skew)
        return found


class SkewedBackend(NumpyBackend):
    """The reference, with the last element of every output too large by a share of itself."""

    def __init__(self, skew):
        self.skew = skew

    def prepare(self, case, inputs):
        runnable = SkewedRunnable(case, inputs, self.special)
        runnable.skew = self.skew
        return runnable


def compared(kernel, skew, edge=-1):
    cases = [
        case
        for case in CATALOGUE.edges_of(kernel)
        if case.golden is None and not case.is_regime and case.sizes.allocated_bytes > 64
    ]
    return differences(SkewedBackend(skew), NumpyBackend(), cases[edge])


@pytest.mark.parametrize("kernel", ["vector_add", "softmax", "matmul"])
def test_a_backend_agrees_with_itself(kernel):
    found = compared(kernel, 0.0)
    assert found
    assert summary(found)["verdict"] == "agrees"
    assert summary(found)["largest_absolute"] == 0


def test_a_difference_is_told_with_its_place():
    (difference,) = compared("vector_add", 1e-3)
    assert not difference.found.passed
    assert difference.found.differing == 1
    assert difference.found.place == (difference.found.compared - 1,)
    assert difference.place in str(difference)
    told = summary([difference])
    assert told["verdict"] == "unequal in 1 output"
    assert told["largest_relative"] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize(("skew", "within"), [(1.5e-5, True), (2.5e-5, False)])
def test_twice_the_kernels_tolerance_is_allowed(skew, within):
    (difference,) = compared("softmax", skew, edge=0)
    assert difference.found.max_error > 0
    assert difference.found.passed is within


def test_a_kernel_without_outputs_has_nothing_to_compare():
    assert "null" not in kernels()
    assert {"matmul", "matmul:naive"} <= set(kernels())


def test_what_stops_one_comparison_is_its_verdict():
    line = row("vector_add", "numpy_reference", "nowhere")
    assert line["verdict"].startswith("not compared: UsageError: unknown backend")


def entry_of(output, place, actual):
    return {"seed": 0, "output": output, "place": place, "actual": actual, "compared": 9}


def test_a_records_value_is_compared_in_its_place():
    case = CATALOGUE.edges_of("vector_add")[2]
    truth = NumpyBackend().prepare(case, case.inputs(0))
    truth()
    (name, values), *_ = truth.arrays([output.name for output in case.spec.outputs]).items()
    right, wrong = (entry_of(name, [1], float(values[1]) + error) for error in (0, 0.5))
    agreeing, apart = recorded(NumpyBackend(), case, [right, entry_of(name, [], 0.0), wrong])
    assert agreeing.found.passed
    assert (agreeing.found.compared, agreeing.found.max_error) == (1, 0)
    assert (apart.found.passed, apart.found.place) == (False, (1,))
    assert apart.found.max_error == pytest.approx(0.5, rel=1e-6)


def test_a_kernel_that_a_record_leaves_out_is_not_said_to_agree():
    line = recorded_row("vector_add", "numpy_reference", {})
    assert (line["cases"], line["verdict"]) == (0, "not compared: nothing to compare with")


def test_a_variant_that_needs_a_devices_own_instructions_is_said_not_to_be_emulated():
    line = row("tensor_core_matmul:wgmma", "emulator", "numpy_reference")
    assert line["verdict"] == "not compared: not emulated: wgmma"
    assert line["cases"] > 0


def test_a_variant_of_which_some_cases_need_them_is_compared_in_the_others():
    line, edges = row("fused_linear_relu:half", "numpy_reference", "numpy_reference"), "fused_linear_relu:half"
    everywhere = [case for case in CATALOGUE.edges_of(edges) if not case.plan.requirement]
    assert (line["verdict"], line["cases"]) == ("agrees", len(everywhere))
    assert line["cases"] < len(CATALOGUE.edges_of(edges))


@pytest.mark.parametrize("kernel", kernels())
def test_every_case_is_either_emulated_or_left_out_with_its_reason(kernel):
    """Only forms of a language without interpreter, and those that are named for the instruction, have no edge."""
    cases = CATALOGUE.edges_of(kernel)
    emulated, lacking = split(cases)
    assert sorted(case.name for case in cases) == sorted([*(case.name for case in emulated), *lacking])
    assert all(case.plan.requirement is None for case in emulated)
    name = cases[0].spec.language
    reason = "wgmma" if name == CUDA else language(name).not_emulated()
    assert set(lacking.values()) <= {reason}
    in_the_way = kernel.endswith("wgmma") or ":tma" in kernel if name == CUDA else reason is not None
    assert bool(emulated) is not in_the_way  # tensor maps feed nothing but wgmma


def test_what_the_split_leaves_out_is_what_the_emulator_refuses():
    cases = CATALOGUE.edges_of("matmul:tf32")
    emulated, lacking = split(cases)
    assert emulated and lacking
    for case in cases:
        if case in emulated:
            continue
        with pytest.raises(BackendUnavailable, match="not emulated: wgmma"):
            open_backend("emulator").prepare(case, {})


def test_a_row_has_the_tables_columns():
    line = row("vector_add", "numpy_reference", "numpy_reference")
    assert tuple(line) == COLUMNS
    assert (line["kernel"], line["variant"], line["verdict"]) == ("vector_add", "", "agrees")
    assert line["elements"] > 2_000_000
