"""The fused product: its own source on the emulator, and its machine code."""

import numpy as np
import pytest

from prism_bench.compilation import compile_source
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.links.groups import MEET, SMALL, SOURCE, TILES, EmulatedCall, EmulatedGroup, fused_launch
from prism_bench.extensions.links.operations import OPERATIONS, GroupCase, case_of
from prism_bench.spec.case import Device

PRODUCT = OPERATIONS["matmul_all_reduce"]


def product(devices, m, n, k):
    case = GroupCase(PRODUCT, "fused", "small", {"devices": devices, "m": m, "n": n, "k": k})
    return case, [case.inputs(device) for device in range(devices)]


def errors(case, inputs, outputs):
    expected = PRODUCT.expected(case.axes, inputs, np)
    return [
        np.linalg.norm(output - want) / np.linalg.norm(want) for output, want in zip(outputs, expected, strict=True)
    ]


@pytest.mark.parametrize(
    ("devices", "m", "n", "k"), [(1, 96, 128, 70), (2, 96, 128, 64), (3, 33, 47, 19), (2, 8, 8, 8), (4, 40, 32, 8)]
)
def test_every_device_holds_the_sum_after_each_launch_in_the_same_bits(devices, m, n, k):
    case, inputs = product(devices, m, n, k)
    with EmulatedGroup().prepare(case, inputs) as call:
        for _ in range(3):
            call.poison()
            call()
            outputs = call.outputs()
            assert max(errors(case, inputs, outputs)) < 1e-3
            assert all(np.array_equal(outputs[0], output) for output in outputs)


@pytest.mark.parametrize("tile", ["Square", "Compact"])
def test_tiles_of_a_gpu(tile):
    case, inputs = product(2, 136, 200, 72)
    call = EmulatedCall(case, inputs, fused_launch(case.axes, SMALL, tile))
    call.poison()
    call()
    assert max(errors(case, inputs, call.outputs())) < 1e-3


def test_launch_waits_for_missing_parts_of_another_device():
    case, inputs = product(2, 32, 32, 8)
    call = EmulatedCall(case, inputs, fused_launch(case.axes, SMALL, "Tiny"))
    call._epoch = 1
    call._run(0, 1)  # the other device multiplies nothing
    assert [1, 0] == [int(counter[0]) for counter in call._sent]
    call._run(1, 1)
    assert [2, 0] == [int(counter[0]) for counter in call._sent]


def test_devices_meet():
    case = case_of("meet:kernel@small@3")
    with EmulatedGroup().prepare(case, [{}] * 3) as call:
        for _ in range(2):
            call()
            assert [3, 3, 3] == [int(output[0]) for output in call.outputs()]


def test_the_emulator_has_no_links():
    case = case_of("all_reduce:nccl@small@2")
    with pytest.raises(BackendUnavailable, match="the emulator has no nccl and no links"):
        EmulatedGroup().prepare(case, [case.inputs(0)] * 2)


def test_large_tiles_where_they_fill_the_device_and_no_more_blocks_than_are_resident():
    device = Device(sm_count=132)
    large, small = (fused_launch(PRODUCT.axes(label, 4), device) for label in ("S1", "S0"))
    assert large.entry.startswith("matmul_all_reduce<Square") and 264 == large.grid
    assert small.entry.startswith("matmul_all_reduce<Compact") and 256 == small.grid
    for name, (*_, resident) in TILES.items():
        assert resident * (fused_launch({**PRODUCT.axes("S1", 4)}, device, name).shared + 1024) <= 228 * 1024


def test_machine_code_spills_no_registers():
    axes, device = PRODUCT.axes("S1", 2), Device(sm_count=132)
    entries = [fused_launch(axes, device, tile).entry for tile in ("Square", "Compact")]
    compiled = compile_source(SOURCE, [*entries, MEET], "90")
    for entry in entries:
        used = compiled.resources[compiled.lowered[entry]]
        assert 0 == used.spill_stores + used.spill_loads
