"""The referee's own digest of outputs is the device's."""

from types import ModuleType

import numpy as np
import pytest

from prism_bench.extensions.judge.referee.referee import digest_of
from tests.backends.test_guard import kernels  # noqa: F401


@pytest.mark.parametrize("size", [1, 16, 4099])
def test_a_device_and_the_host_have_the_same_digest(kernels, size: int) -> None:  # noqa: F811
    content = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    sums = np.zeros(1, np.uint64)
    kernels["digest"]((2,), (32,), (content, np.int64(size), sums, np.int32(0)))
    assert digest_of(content) == int(sums[0])


@pytest.mark.parametrize("size", [0, 3, 8, 4099, 700_003])
def test_arrays_of_another_module_have_the_same_digest(size: int) -> None:
    other = ModuleType("other")  # as CuPy is, whose pieces are larger
    vars(other).update(vars(np))
    content = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert digest_of(content) == digest_of(content, other)


@pytest.mark.parametrize("size", [0, 1, 8, 1001])
def test_a_digest_depends_on_every_byte_and_its_place(size: int) -> None:
    content = np.arange(size, dtype=np.uint32).view(np.uint8)[:size].copy()
    first = digest_of(content)
    assert 0 <= first < 1 << 64
    for at in {0, size // 2, size - 1} if size else ():
        content[at] ^= 1
        assert digest_of(content) != first
        content[at] ^= 1
    if size > 8:
        assert digest_of(np.roll(content, 1)) != first
