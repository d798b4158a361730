"""Tensor maps: what the tensor memory accelerator has to know of a buffer, made by the driver."""

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from prism_bench.backends.cuda.driver import library
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.spec.kernel import TensorMap
from prism_bench.spec.launch import MAP_BYTES
from prism_bench.units import count_text

_TYPES = {1: 0, 2: 1, 4: 7}  # CUtensorMapDataType by bytes of an element: UINT8, UINT16, FLOAT32
_TF32 = 11  # CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
_BYTES = 128  # of a CUtensorMap
MAP_TYPE = np.dtype([("map", np.uint64, _BYTES // 8)])  # of which a kernel takes one, by value
_ALIGNED = 64
_SWIZZLED, _PROMOTED = 3, 2  # CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B
_PIECE = 16


def tensor_map(wanted: TensorMap, buffer: Any, driver: Any = None) -> np.ndarray:
    """Return the map of a buffer as an array of one element, which CuPy passes by value.

    Raises a SpecError where the accelerator cannot copy by it: rows of whole 16 bytes, elements of 1, 2 or 4.
    """
    size = buffer.dtype.itemsize
    *lines, cols = buffer.shape
    if size not in _TYPES or not buffer.size or cols * size % _PIECE or buffer.data.ptr % _PIECE:
        raise SpecError(
            f"{wanted.name}: a tensor map needs rows of whole {_PIECE} bytes, elements of 1, 2 or 4 bytes, "
            f"not {buffer.dtype} {buffer.shape}"
        )
    if wanted.tf32 and size != 4:
        raise SpecError(f"{wanted.name}: only floats are rounded to TF32, not {buffer.dtype}")
    encode = getattr(driver or library(), "cuTensorMapEncodeTiled", None)
    if encode is None:
        raise BackendUnavailable("the driver has no tensor maps (cuTensorMapEncodeTiled): it needs CUDA 12 or later")
    memory = np.zeros(_BYTES + _ALIGNED, np.uint8)
    first = -memory.ctypes.data % _ALIGNED
    box = wanted.box or (wanted.lines, MAP_BYTES // size)
    if wanted.box and len(box) != len(buffer.shape):
        raise SpecError(
            f"{wanted.name}: boxes of {box} are none of an array of {count_text(len(buffer.shape), 'dimension')}"
        )
    shape = tuple(buffer.shape) if wanted.box else (prod(lines), cols)
    pitches = [prod(shape[i:]) * size for i in range(len(shape) - 1, 0, -1)]
    kind = _TF32 if wanted.tf32 else _TYPES[size]
    swizzled = _SWIZZLED if box[-1] * size == MAP_BYTES else 0
    status = encode(
        ctypes.c_void_p(memory.ctypes.data + first), kind, len(shape), ctypes.c_void_p(buffer.data.ptr),
        _numbers(ctypes.c_uint64, shape[::-1]), _numbers(ctypes.c_uint64, pitches),
        _numbers(ctypes.c_uint32, box[::-1]), _numbers(ctypes.c_uint32, [1] * len(shape)), 0, swizzled, _PROMOTED, 0,
    )  # fmt: skip
    if status:
        raise SpecError(f"{wanted.name}: no tensor map of {buffer.dtype} {buffer.shape} (driver error {status})")
    return memory[first : first + _BYTES].view(MAP_TYPE)


def _numbers(kind: Any, values: Sequence[int]) -> Any:
    """Return a C array of the numbers."""
    return (kind * len(values))(*values)
