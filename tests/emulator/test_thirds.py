"""Floats as sums of three bfloat16: nothing of a normal float is lost."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.on_device import ON_DEVICE, build

SOURCE = Path(__file__).parent / "kernels" / "thirds.cu"


@pytest.mark.parametrize("build_kind", ["fast", ON_DEVICE])
def test_three_bfloat16_add_up_to_the_float(build_kind):
    rng = np.random.default_rng(0)
    x = np.ldexp(rng.normal(size=4096), rng.integers(-90, 120, 4096)).astype("float32")
    x[:4] = 0.0, -0.0, 1 + 2**-23, 2 - 2**-23
    parts = [np.zeros(x.size // 2, "uint32") for _ in range(3)]
    with closing(build(SOURCE, ["thirds"], build_kind)) as module:
        assert module.launch("thirds", 16, 128, [x, *parts, np.int32(x.size // 2)]).is_clean
    values = [(part.view("uint16").astype("uint32") << 16).view("float32").astype("float64") for part in parts]
    np.testing.assert_array_equal(sum(values), x.astype("float64"))
    assert (abs(values[1]) <= 2**-8 * abs(values[0])).all()
    assert (abs(values[2]) <= 2**-8 * abs(values[1])).all()
