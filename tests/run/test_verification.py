"""The correctness gate catches every way of being wrong, and says where, what, and what would have been right."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism_bench import In, InOut, KernelSpec, Launch, Out, Workload, exact
from prism_bench.backends.host import HostRunnable
from prism_bench.backends.null import NullBackend
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.catalogue import discover
from prism_bench.run import verification
from prism_bench.run.verification import KnownReference, compare_outputs, complaint, passed, verify, verify_prepared
from prism_bench.spec.case import Case

TOYS = Path(__file__).parent.parent / "toys"
DOUBLE = discover(TOYS).case("double[n=1000]")


def entries(fault=None, case=DOUBLE, seeds=(0, 1)):
    return verify(NullBackend({"*": {fault: True}} if fault else {}), case, seeds)


def test_a_right_kernel_passes_with_every_seed_and_says_what_was_compared():
    found = entries()
    assert passed(found)
    assert [(0, "y", 1000, 1000), (1, "y", 1000, 1000)] == [
        (one["seed"], one["output"], one["compared"], one["of"]) for one in found
    ]
    assert {"float64 on the host"} == {one["where"] for one in found}
    assert {"exact"} == {one["tolerance"] for one in found}


@pytest.mark.parametrize("fault", ["wrong", "unwritten", "nan", "shape", "mutates", "skips"])
def test_each_fault_is_caught(fault):
    assert not passed(entries(fault))


def test_a_wrong_output_is_told_with_place_value_and_reference():
    found = entries("wrong")
    x = DOUBLE.inputs(0)["x"].on(np)
    place = found[0]["place"]
    assert x[place[0]] * 2 == found[0]["expected"]
    words = complaint(DOUBLE, "null", found)
    assert words.startswith(f"double[n=1000] on null: y[{place[0]}] is {found[0]['actual']:.9g}, reference ")
    assert "1000 of 1000 elements differ (seed 0)" in words


def test_an_output_that_was_not_written_still_holds_the_poison():
    found = entries("unwritten")
    assert 1000 == found[0]["differing"]
    assert np.isnan(found[0]["actual"])


class PoisonWriter(HostRunnable):
    """Kernel that writes 15 of 20 elements, in every byte what a buffer holds before a check."""

    def __init__(self, case, inputs):
        self.case = case
        self.reset(inputs)

    def reset(self, inputs):
        self.inputs = inputs
        self.buffers = {array.name: self.laid_out(array, inputs) for array in self.case.spec.arrays}

    def buffer(self, name):
        return self.buffers[name]

    def __call__(self):
        self.buffers["y"][5:].view(np.uint8)[:] = self.case.spec.array("y").first_byte


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "float8_e4m3fn", "float16", "float32"])
def test_written_poison_is_not_called_unwritten(dtype):
    spec = KernelSpec(
        entry="f", arguments=(In("x", "n"), Out("y", "n", dtype)), launch=lambda n: Launch(n, 1),
        reference=lambda x: 0 * x, workloads={"S0": Workload(n=20)}, tolerance=exact(),
    )  # fmt: skip
    case = Case(replace(spec, name="f"), Workload(n=20), "S0")
    (entry,) = verify_prepared(NullBackend(), PoisonWriter(case, case.inputs(0)), seeds=(0,))
    assert (20, "y[0] was never written (5 of 20 elements)") == (entry["differing"], entry["error"])


def test_one_nan_among_numbers_is_found():
    found = entries("nan")
    assert (1, [0]) == (found[0]["differing"], found[0]["place"])


def test_work_skipped_on_the_second_call_shows_with_the_second_seed():
    assert [True, False] == [one["passed"] for one in entries("skips")]


def test_an_output_of_another_size_is_told_with_both_shapes():
    assert "y has shape (999,), the reference (1000,)" == entries("shape")[0]["error"]


def test_a_changed_input_is_told_by_name():
    assert "double[n=1000] on null: input x was changed" == complaint(DOUBLE, "null", entries("mutates"))


def test_an_input_may_change_only_where_the_spec_says_so():
    spec = KernelSpec(
        entry="f", arguments=(InOut("x", "n"),), launch=lambda n: Launch(n, 1), reference=lambda x: x + 1,
        workloads={"S0": Workload(n=5)}, tolerance=exact(),
    )  # fmt: skip
    case = Case(replace(spec, name="f"), Workload(n=5), "S0")
    assert passed(entries("mutates", case))


def test_an_empty_input_cannot_change():
    spec = KernelSpec(
        entry="f", arguments=(In("x", "n"), Out("y", "n")), launch=lambda n: Launch(n, 1), reference=lambda x: x,
        workloads={"S0": Workload(n=0)},
    )  # fmt: skip
    assert passed(entries("mutates", Case(replace(spec, name="f"), Workload(n=0), "S0")))


def test_golden_data_are_checked_once_whatever_the_seeds():
    golden = next(case for case in discover(TOYS).edges_of("double") if case.label == "golden")
    assert [0] == [one["seed"] for one in entries(case=golden)]
    assert not passed(entries("wrong", golden))


def test_the_runnable_holds_the_last_seeds_inputs_afterwards():
    backend = NullBackend()
    with backend.prepare(DOUBLE, DOUBLE.inputs(0)) as runnable:
        verify_prepared(backend, runnable, (0, 7))
        assert DOUBLE.inputs(7)["x"].on(np).tobytes() == runnable.arrays(["x"])["x"].tobytes()


def test_an_output_in_another_shape_of_the_same_size_is_compared():
    inputs = DOUBLE.inputs(0)
    right = 2 * inputs["x"].on(np)
    assert passed(compare_outputs(NullBackend(), DOUBLE, inputs, {"y": right.reshape(10, 100)}, 0))


def test_a_kernel_without_outputs_has_nothing_to_compare():
    assert [] == entries(case=discover(TOYS).case("nothing[blocks=1]"))


def test_a_reference_is_said_to_be_compared_with_itself():
    found = verify(NumpyBackend(), DOUBLE)
    assert {"itself: only shapes, types and untouched inputs are tested here"} == {one["where"] for one in found}


def test_a_known_reference_is_evaluated_once_for_the_same_inputs(monkeypatch):
    evaluated, inputs, known = [], DOUBLE.inputs(0), KnownReference()
    monkeypatch.setattr(verification, "_evaluated", lambda *given, original=verification._evaluated: (
        evaluated.append(given), original(*given))[1])  # fmt: skip
    outputs = {name: one.want for name, one in KnownReference().outputs(NumpyBackend(), DOUBLE, inputs).items()}
    evaluated.clear()
    entries = [compare_outputs(NumpyBackend(), DOUBLE, inputs, outputs, 0, known=known) for _ in range(3)]
    assert entries[0] == entries[1] == entries[2] == compare_outputs(NumpyBackend(), DOUBLE, inputs, outputs, 0)
    assert 2 == len(evaluated)
    compare_outputs(NumpyBackend(), DOUBLE, DOUBLE.inputs(0), outputs, 0, known=known)
    assert 3 == len(evaluated)


def test_a_large_reference_is_not_kept(monkeypatch):
    monkeypatch.setattr(verification, "KEPT_BYTES", 8)
    inputs, known = DOUBLE.inputs(0), KnownReference()
    first = known.outputs(NumpyBackend(), DOUBLE, inputs)
    assert first is not known.outputs(NumpyBackend(), DOUBLE, inputs)
