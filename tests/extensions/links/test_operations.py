"""Operations on several GPUs: references, sizes, and texts of tasks."""

import numpy as np
import pytest

from prism_bench.errors import PrismBenchError
from prism_bench.extensions.links.operations import LABELS, OPERATIONS, case_of, chosen


def inputs_of(case):
    return [case.inputs(device) for device in range(case.devices)]


def expected(name, devices, form="nccl"):
    case = case_of(f"{name}:{form}@small@{devices}")
    return inputs_of(case), case.operation.expected(case.axes, inputs_of(case), np)


def test_expected_outputs_of_each_device():
    inputs, outputs = expected("all_to_all", 3)
    for device in range(3):
        parts = [arrays["x"][device * 64 : device * 64 + 64] for arrays in inputs]
        assert np.array_equal(np.concatenate(parts), outputs[device])
    inputs, outputs = expected("all_gather", 2)
    assert np.array_equal(np.concatenate([inputs[0]["x"], inputs[1]["x"]]), outputs[1])
    inputs, outputs = expected("peer_copy", 3, "driver")
    assert np.array_equal(inputs[2]["x"], outputs[0]) and np.array_equal(inputs[0]["x"], outputs[1])
    inputs, outputs = expected("all_reduce", 4)
    assert np.allclose(sum(arrays["x"].astype(float) for arrays in inputs), outputs[3], rtol=1e-15)
    inputs, outputs = expected("matmul_all_reduce", 2, "fused")
    whole = [np.concatenate([arrays[name] for arrays in inputs], axis) for name, axis in (("a", 1), ("b", 0))]
    assert np.allclose(whole[0].astype(float) @ whole[1].astype(float), outputs[0], rtol=1e-12)


@pytest.mark.parametrize("devices", [2, 3, 8])
@pytest.mark.parametrize("label", LABELS)
def test_a_case_is_the_case_of_its_task(label, devices):
    cases = chosen((), (label,), devices)
    assert cases == [case_of(case.task) for case in cases]
    assert (
        len(cases)
        == len({case.name for case in cases})
        == sum(len(operation.forms) for operation in OPERATIONS.values())
    )


def test_operation_without_sizes_is_measured_once_and_first():
    cases = chosen((), ("S0", "S1"), 2)
    assert ("meet", "S0") == (cases[0].operation.name, cases[0].label)
    assert 1 == [case.operation.name for case in cases].count("meet")


def test_devices_hold_different_inputs_and_the_same_ones_each_time():
    first, second = inputs_of(case_of("all_reduce:nccl@small@2"))
    assert not np.array_equal(first["x"], second["x"])
    assert np.array_equal(first["x"], case_of("all_reduce:nccl@small@2").inputs(0)["x"])


def test_bytes_that_a_device_has_to_send():
    sent = {name: operation.sent(operation.axes("S0", 4)) for name, operation in OPERATIONS.items()}
    whole = 4 * (1 << 18)
    assert (whole, 0.75 * whole, 1.5 * whole) == (sent["peer_copy"], sent["all_to_all"], sent["all_reduce"])
    assert 2 * 2 * 256 * 4096 * 0.75 == sent["matmul_all_reduce"]
    assert 0 == sent["meet"]


@pytest.mark.parametrize(
    ("names", "labels", "devices", "message"),
    [
        (("all_reduc",), ("S0",), 2, "unknown operation 'all_reduc'; did you mean all_reduce"),
        ((), ("S7",), 2, "unknown label 'S7'"),
        ((), ("S0",), 1, "--devices 1: links are between two GPUs at least"),
    ],
)
def test_invalid_choices_are_refused(names, labels, devices, message):
    with pytest.raises(PrismBenchError, match=message):
        chosen(names, labels, devices)
