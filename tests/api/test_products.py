"""Products by the measured form, on the references: what is picked, what comes out, what is refused."""

import numpy as np
import pytest

from prism_bench.api.kernels import Matmul
from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.errors import UsageError
from prism_bench.record.identity import machine
from prism_bench.workflows.tuning.crossover import CrossoverRow, Measured, path_for, write_measured

BACKEND = NumpyBackend()
SECONDS = {"fp32": 4.0, "tf32": 3.0, "f16": 1.0, "wmma": 2.0}
ERRORS = {"fp32": 1e-6, "tf32": 4e-4, "f16": 5e-4, "wmma": 5e-4}


@pytest.fixture
def product(tmp_path):
    """A function that gives the product with a table in which f16 is quickest, conversion or not."""

    def make(device=None, **how):
        facts = BACKEND.facts()
        row = CrossoverRow({"m": 16, "k": 16, "n": 16}, SECONDS, 0.5, 0.5, ERRORS)
        whose = (machine(facts)["id"], device or facts["device"], BACKEND.name, {}, "2026")
        write_measured(Measured(*whose, matmul=(row,)), path_for(whose[0], tmp_path))
        return Matmul(BACKEND, folder=tmp_path, **how)

    return make


def operands(dtype="float32", m=17, k=16, n=20, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)


@pytest.mark.parametrize(
    "dtype, tolerance, form, within",
    [("float32", 1e-3, "f16", 1e-2), ("float16", 1e-3, "f16", 1e-5), ("float32", 1e-5, "fp32", 1e-5)],
)
def test_the_form_follows_dtype_and_tolerance(product, dtype, tolerance, form, within):
    a, b = operands(dtype)
    with product(tolerance=tolerance) as matmul:
        assert form == matmul.picked(a, b).form
        found = matmul(a, b)
    assert ("float32", (17, 20)) == (found.dtype, found.shape)
    assert np.abs(found - a.astype(float) @ b.astype(float)).max() < within


def test_the_same_shape_again_takes_the_new_operands(product):
    with product() as matmul:
        first, second = (matmul(*operands(seed=seed)) for seed in (0, 1))
    assert np.abs(second - np.matmul(*operands(seed=1))).max() < 1e-2 < np.abs(second - first).max()


def test_a_table_of_another_device_is_not_used(product):
    with product(device="NVIDIA H200") as matmul:
        assert ("fp32", None) == (matmul.picked(*operands()).form, matmul.picked(*operands()).seconds)


@pytest.mark.parametrize(
    "a, b, complaint",
    [
        (np.ones((2, 3), "f4"), np.ones((2, 3), "f4"), r"a product of \[m, k\] and \[k, n\], not of \[2, 3\] and"),
        (np.ones((2, 3), "f4"), np.ones(3, "f4"), r"not of \[2, 3\] and \[3\]"),
        (np.ones((2, 3), "f4"), np.ones((3, 2), "f2"), "operands of one dtype, not float32 and float16"),
        (np.ones((2, 3)), np.ones((3, 2)), "unknown dtype of operands 'float64'"),
    ],
)
def test_what_is_no_such_product_is_refused(product, a, b, complaint):
    with product() as matmul, pytest.raises(UsageError, match=complaint):
        matmul(a, b)
