"""Products by tensor maps: what Python knows of their tiles is what the kernels have, and which product gets which."""

import re

import pytest

from tests.built_in import CATALOGUE
from tests.kernels.test_convolution_tiles import AMPERE, HOPPER, INCLUDE, launch_of

HEADER = (INCLUDE / "tensor_cores/streamed_product.cuh").read_text()
ROWS = dict(re.findall(r"using (\w+) = StreamedTile<E, (\d+), STAGES", HEADER))
CONSTANTS = {name: int(value) for name, value in re.findall(r"\b(N|CLUSTER|THREADS|STORED_ROWS|BOXES) = (\d+)", HEADER)}


@pytest.mark.parametrize("tile", ROWS)
def test_tiles_are_those_of_the_kernel(tile):
    edges = [*CATALOGUE.edges_of("tensor_core_matmul:tma"), *CATALOGUE.edges_of("tensor_core_matmul:tma_square")]
    steps = [step for one in edges if one.workload["m"] == 1000 for step in one.plan.steps(HOPPER)]
    (step,) = (one for one in steps if f"<{tile}<" in one.entry)
    stages = int(re.fullmatch(rf"tensor_core_matmul<{tile}<Half, (\d)>, true, false, 8>", step.entry)[1])
    stage = (int(ROWS[tile]) + CONSTANTS["N"]) * 128
    sums = 4 * CONSTANTS["BOXES"] * CONSTANTS["STORED_ROWS"] * 128
    assert step.shared == stages * (stage + 16) + sums + 1024
    assert step.block == CONSTANTS["THREADS"]
    pairs = -(-1000 // (CONSTANTS["CLUSTER"] * CONSTANTS["N"]))
    assert step.grid == -(-1000 // int(ROWS[tile])) * pairs * CONSTANTS["CLUSTER"]
    assert [one.lines for one in step.maps] == [64, 64, CONSTANTS["STORED_ROWS"]]


@pytest.mark.parametrize(
    ("case", "tile"),
    [
        ("tensor_core_matmul[m=4096,n=4096,k=4096]", "StreamedTall<Half, 4>"),  # four whole rounds
        ("tensor_core_matmul[m=8192,n=8192,k=8192]", "Streamed<Half, 4>"),
        ("tensor_core_matmul:float8[m=4096,n=4096,k=4096]", "StreamedSquare<Float8, 6>"),
        ("fused_linear_gelu:half[batch=8192,inputs=4096,outputs=16384]", "Streamed<Half, 4>"),
        ("fused_matmul_bias_activation:bfloat16[batch=8192,inputs=4096,outputs=4096]", "Streamed<Bfloat, 4>"),
    ],
)
def test_products_get_the_tile_whose_rounds_take_the_least_time(case, tile):
    (step,) = CATALOGUE.anywhere(case).plan.steps(HOPPER)
    assert f"<{tile}, true, " in step.entry


@pytest.mark.parametrize(
    ("kernel", "functor"),
    [
        ("fused_linear_gelu:half", "GeluOfHalves"),
        ("fused_matmul_bias_activation:float16", "GeluOfHalves"),
        ("fused_matmul_bias_activation:float16_by_hand", "GeluOfHalves"),
        ("fused_matmul_bias_activation:bfloat16", "Gelu"),
        ("fused_matmul_bias_activation:three_bfloat16", "Gelu"),
        ("fused_linear_gelu:three_bfloat16", "Gelu"),
        ("fused_linear_gelu", "Gelu"),
    ],
)
@pytest.mark.parametrize("device", [HOPPER, AMPERE])
def test_only_sums_of_halves_have_the_gelu_of_halves(kernel, functor, device):
    assert launch_of(kernel, device, label="S1").entry.endswith(f", {functor}>")
