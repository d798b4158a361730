"""Launches that begin while the one before them ends: programmatic dependent launch, which CuPy does not offer."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prism_bench.backends.cuda.driver import library
from prism_bench.errors import BackendUnavailable

FIRST_CAPABILITY = 90
_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
_VALUE_WORDS = 16  # of CUlaunchAttributeValue, 4 bytes each

_Triple = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchExtents:
    """Blocks of the grid, threads of a block, and bytes of dynamic shared memory."""

    grid: _Triple
    block: _Triple
    shared: int


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * _VALUE_WORDS)]


class _Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint),
    ]  # fmt: skip


def overlapping_call(
    function: int, extents: LaunchExtents, values: Sequence[Any], stream: Callable[[], int], driver: Any = None
) -> Callable[[], None]:
    """Return a function that launches the driver's `function` on `stream()` and lets it overlap the launch before.

    `values` are device arrays and NumPy scalars.
    """
    driver = driver or library()
    held = [np.asarray([value.data.ptr], np.uint64) if _is_array(value) else np.asarray([value]) for value in values]
    parameters = (ctypes.c_void_p * len(held))(*(one.ctypes.data for one in held))
    attribute = _Attribute(_SERIALIZATION, 0, (ctypes.c_int * _VALUE_WORDS)(1))
    configuration = _Configuration(
        (ctypes.c_uint * 3)(*extents.grid),
        (ctypes.c_uint * 3)(*extents.block),
        extents.shared,
        None,
        ctypes.pointer(attribute),
        1,
    )

    def call() -> None:
        configuration.stream = stream()
        pointers = parameters if held else None  # they point into the arrays that are held
        status = driver.cuLaunchKernelEx(ctypes.byref(configuration), ctypes.c_void_p(function), pointers, None)
        if status:
            raise BackendUnavailable(f"cuLaunchKernelEx failed with error {status}")

    return call


def _is_array(value: Any) -> bool:
    return hasattr(value, "data") and hasattr(value.data, "ptr")
