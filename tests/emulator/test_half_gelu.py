"""GELU behind products of halves: its largest error over all halves and between them, and what is not finite."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from tests.emulator.on_device import ON_DEVICE, build

SOURCE = Path(__file__).parent / "kernels" / "half_gelu.cu"
MOST = 7e-7  # as the header says


@pytest.fixture(scope="module", params=["fast", ON_DEVICE])
def module(request):
    with closing(build(SOURCE, ["half_gelu"], request.param)) as built:
        yield built


def gelu_of(module, x):
    y = np.zeros_like(x)
    assert module.launch("half_gelu", -(-x.size // 256), 256, [x, y, np.int32(x.size)]).is_clean
    return y


def error_of(module, x):
    wide = x.astype(np.float64)
    return np.abs(gelu_of(module, x) - wide * ndtr(wide)).max()


def test_no_half_is_further_off_than_the_header_says(module):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    assert error_of(module, halves[np.isfinite(halves)]) <= MOST


def test_nor_is_a_sum_between_halves(module):
    assert error_of(module, np.linspace(-7, 7, 1 << 16, dtype=np.float32)) <= MOST


def test_nan_and_infinities_pass(module):
    x = np.array([np.nan, np.inf, -np.inf, -1e30, 1e30, 0.0, -0.0], dtype=np.float32)
    np.testing.assert_array_equal(gelu_of(module, x), np.array([np.nan, np.inf, 0, 0, 1e30, 0, 0], dtype=np.float32))
