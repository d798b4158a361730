"""Which tiles a product gets: whole ones where none is ragged, small ones in the place of few in a last round."""

from dataclasses import replace

import pytest

from prism_bench.errors import SpecError
from prism_bench.spec.case import Case, Device
from prism_bench.spec.workload import Workload
from tests.built_in import CATALOGUE

HOPPER = Device(sm_count=132, max_shared_bytes=227 << 10, compute_capability=90)


def launched(kernel, device=HOPPER, **sizes):
    (step,) = Case(CATALOGUE.edges_of(kernel)[0].spec, Workload(**sizes), "edge").plan.steps(device)
    return step


def products(*sizes):
    return {"m": sizes[0], "n": sizes[1], "k": sizes[2]}


def layers(*sizes):
    return {"batch": sizes[0], "outputs": sizes[1], "inputs": sizes[2]}


def cells(*sizes):
    return {"batch": sizes[0], "inputs": sizes[1], "hidden": sizes[2]}


@pytest.mark.parametrize(
    ("kernel", "sizes", "entry", "grid"),
    [
        ("matmul", products(4096, 4096, 4096), "matmul<Full, 4>", 512),
        ("matmul", products(4097, 4096, 4096), "matmul<Large, 4>", 33 * 16),
        ("matmul", products(4096, 4096, 4097), "matmul<Large, 4>", 512),
        ("matmul", products(256, 256, 256), "matmul<Small, 4>", 128),
        ("fused_linear_relu", layers(8192, 4096, 4096), "fused_linear_relu<Full, 4, false>", 1024),
        # 31 rounds of 132 tiles, and 4 tiles of 32 parts each.
        ("fused_linear_relu", layers(8192, 16_384, 4096), "fused_linear_relu<Split, 4, false>", 4092 + 128),
        ("fused_linear_relu", layers(8192, 16_384, 4112), "fused_linear_relu<Full, 4, false>", 4096),
        ("lstm_cell", cells(1024, 1024, 1024), "lstm_cell<FullRows>", 128),
        ("lstm_cell", cells(1024, 1025, 1024), "lstm_cell<Large>", 128),
        ("gru_cell", cells(1024, 1024, 1024), "gru_cell<FullBroad, true>", 128),
        ("gru_cell", cells(1024, 1025, 1024), "gru_cell<Broad, true>", 128),
        ("gru_cell", cells(1280, 16, 46_400), "gru_cell<Broad, true>", 7250),  # 32-bit distances between gates
        (
            "reservoir_update:batched",
            {"samples": 1024, "neurons": 8192, "inputs": 16},
            "reservoir_batched<FullRows>",
            256,
        ),
    ],
)
def test_a_product_without_ragged_tiles_takes_whole_ones(kernel, sizes, entry, grid):
    step = launched(kernel, **sizes)
    assert (entry, grid) == (step.entry, step.grid)


def test_whole_tiles_need_the_devices_shared_memory():
    assert launched("matmul", m=4096, n=4096, k=4096).shared == 75_264
    assert (
        launched("matmul", replace(HOPPER, max_shared_bytes=64 << 10), m=4096, n=4096, k=4096).entry
        == "matmul<Large, 4>"
    )


def test_a_ragged_product_refuses_whole_tiles():
    with pytest.raises(SpecError, match="tile Full needs rows by 128, columns by 256 and a depth by 16, not 128 rows"):
        launched("matmul", m=128, n=256, k=8, tile="Full")
