"""Tensor maps on a driver that is played: what it is asked for, and buffers that the accelerator cannot copy."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.cuda.runnable import tensor_map
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.spec.kernel import TensorMap


class Driver:
    """Writes its arguments down, and one byte into the map."""

    def __init__(self, status=0):
        self.status = status

    def cuTensorMapEncodeTiled(self, to, kind, rank, address, extents, pitch, box, steps, *rest):  # noqa: N802
        self.asked = (kind, rank, address.value, [*extents], [*pitch], [*box], [*steps], *rest)
        assert to.value % 64 == 0
        ctypes.memset(to, 7, 1)
        return self.status


def buffer(shape, dtype, pointer=4096):
    array = np.zeros(shape, dtype)
    return SimpleNamespace(shape=shape, dtype=array.dtype, size=array.size, data=SimpleNamespace(ptr=pointer))


@pytest.mark.parametrize(("dtype", "kind", "elements"), [("float16", 1, 64), ("float32", 7, 32), ("uint8", 0, 128)])
def test_a_map_describes_the_buffer_in_boxes_of_128_bytes(dtype, kind, elements):
    driver = Driver()
    encoded = tensor_map(TensorMap("a", lines=64), buffer((2, 5, 48), dtype), driver)
    size = np.dtype(dtype).itemsize
    assert driver.asked == (kind, 2, 4096, [48, 10], [48 * size], [elements, 64], [1, 1], 0, 3, 2, 0)
    assert encoded.size == 1
    assert encoded.nbytes == 128
    assert encoded.view(np.uint8)[0] == 7


@pytest.mark.parametrize(
    ("odd", "wanted", "need"),
    [
        (buffer((4, 9), "float16"), TensorMap("a"), "rows of whole 16 bytes, not 18"),
        (buffer((4, 8), "float64"), TensorMap("a"), "elements of 1, 2 or 4 bytes, not 8"),
        (buffer((0, 8), "float16"), TensorMap("a"), "1 to 4,294,967,296 elements along each dimension"),
        (buffer((4, 16), "uint8", 4104), TensorMap("a"), "an address that is a multiple of 16, not of 8"),
        (buffer((4, 8), "float16"), TensorMap("a", box=(4, 4)), "lines of a box of whole 16 bytes, not 8"),
        (buffer((4, 8), "float16"), TensorMap("a", tf32=True), "floats to round to TF32, not elements of 2 bytes"),
        (buffer((3, 4, 9), "float32"), TensorMap("a", box=(1, 1, 4)), "rows of whole 16 bytes, not 36"),
    ],
)
def test_what_the_accelerator_cannot_copy_is_refused(odd, wanted, need):
    with pytest.raises(SpecError, match=f"a: a tensor map needs {need}; the array has the shape"):
        tensor_map(wanted, odd, Driver())


def test_rows_far_apart_are_refused():
    """No array of this size exists: the requirement is checked on its extents."""
    wanted = TensorMap("a", box=(1, 1, 64))
    assert wanted.of((2, 2**10, 2**28), 2) == ((2, 2**10, 2**28), (1, 1, 64))
    with pytest.raises(SpecError, match="at most 1,099,511,627,775 bytes from one row or plane to the next"):
        wanted.of((2, 2**11, 2**28), 2)


def test_a_driver_that_refuses_or_has_no_maps_is_reported():
    with pytest.raises(SpecError, match="driver error 1"):
        tensor_map(TensorMap("a"), buffer((8, 8), "float16"), Driver(status=1))
    with pytest.raises(BackendUnavailable, match="needs CUDA 12"):
        tensor_map(TensorMap("a"), buffer((8, 8), "float16"), SimpleNamespace())
    with pytest.raises(SpecError, match="1 to 256 lines"):
        TensorMap("a", lines=257)


def test_floats_are_rounded_to_tf32_on_the_way():
    driver = Driver()
    tensor_map(TensorMap("a", lines=32, tf32=True), buffer((16, 48), "float32"), driver)
    assert driver.asked == (11, 2, 4096, [48, 16], [48 * 4], [32, 32], [1, 1], 0, 3, 2, 0)
    with pytest.raises(SpecError, match="a: a tensor map needs floats to round to TF32"):
        tensor_map(TensorMap("a", tf32=True), buffer((4, 8), "float16"), driver)


def test_a_map_has_boxes_of_all_dimensions():
    """Swizzled where a box's rows are 128 bytes, innermost dimension first."""
    driver = Driver()
    tensor_map(TensorMap("x", box=(1, 34, 8, 64)), buffer((2, 5, 6, 16), "float16"), driver)
    swizzled = (3, 2, 0)
    assert driver.asked == (1, 4, 4096, [16, 6, 5, 2], [32, 192, 960], [64, 8, 34, 1], [1, 1, 1, 1], 0, *swizzled)
    tensor_map(TensorMap("x", tf32=True, box=(1, 16, 10, 36)), buffer((2, 3, 5, 8), "float32"), driver)
    plain = (0, 2, 0)
    assert driver.asked == (11, 4, 4096, [8, 5, 3, 2], [32, 160, 480], [36, 10, 16, 1], [1, 1, 1, 1], 0, *plain)


def test_a_box_has_the_dimensions_of_its_array():
    with pytest.raises(SpecError, match=r"x: boxes of \(8, 64\) are none of an array of 3 dimensions"):
        tensor_map(TensorMap("x", box=(8, 64)), buffer((2, 8, 64), "float16"), Driver())
    with pytest.raises(SpecError, match="1 to 256 elements in up to 5 dimensions"):
        TensorMap("x", box=(1, 257))
