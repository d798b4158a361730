"""Which tiles a product gets: whole ones where none is ragged, small ones in the place of few in a last round."""

from dataclasses import replace

import pytest

from prism_bench.case import Device
from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.keeping import HOPPER
from tests.built_in import CATALOGUE


def launched(name, device=HOPPER):
    (case,) = CATALOGUE.cases([name])
    (step,) = case.plan.steps(device)
    return step


@pytest.mark.parametrize(
    ("name", "entry", "grid"),
    [
        ("matmul[m=4096,n=4096,k=4096]", "matmul<Full, 4>", 512),
        ("matmul[m=4097,n=4096,k=4096]", "matmul<Large, 4>", 33 * 16),
        ("matmul[m=4096,n=4096,k=4097]", "matmul<Large, 4>", 512),
        ("fused_linear_relu[batch=8192,inputs=4096,outputs=4096]", "fused_linear_relu<Full, 4, false>", 1024),
        # 31 rounds of 132 tiles, and 4 tiles of 32 parts each.
        ("fused_linear_relu[batch=8192,inputs=4096,outputs=16384]", "fused_linear_relu<Split, 4, false>", 4092 + 128),
        ("fused_linear_relu[batch=8192,inputs=4112,outputs=16384]", "fused_linear_relu<Full, 4, false>", 4096),
        ("matmul[m=256,n=256,k=256]", "matmul<Small, 4>", 128),
        ("lstm_cell[batch=1024,inputs=1024,hidden=1024]", "lstm_cell<FullRows>", 128),
        ("lstm_cell[batch=1024,inputs=1025,hidden=1024]", "lstm_cell<Large>", 128),
        ("gru_cell[batch=1024,inputs=1024,hidden=1024]", "gru_cell<FullBroad, true>", 128),
        ("gru_cell[batch=1024,inputs=1025,hidden=1024]", "gru_cell<Broad, true>", 128),
        ("gru_cell[batch=128,inputs=16,hidden=46400,tile=Broad]", "gru_cell<Broad, true>", 725),
        ("reservoir_update:batched[samples=1024,neurons=8192,inputs=16]", "reservoir_batched<FullRows>", 256),
    ],
)
def test_a_product_without_ragged_tiles_takes_whole_ones(name, entry, grid):
    step = launched(name)
    assert (entry, grid) == (step.entry, step.grid)


def test_whole_tiles_need_the_devices_shared_memory():
    assert launched("matmul[m=4096,n=4096,k=4096]").shared == 75_264
    small = replace(HOPPER, max_shared_bytes=64 << 10)
    assert launched("matmul[m=4096,n=4096,k=4096]", small).entry == "matmul<Large, 4>"


def test_a_ragged_product_refuses_whole_tiles():
    with pytest.raises(SpecError, match="tile Full needs rows by 128, columns by 256 and a depth by 16, not 128 rows"):
        launched("matmul[m=128,n=256,k=8,tile=Full]", Device())
