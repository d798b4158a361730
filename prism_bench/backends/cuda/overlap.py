"""Launches with attributes that CuPy does not offer: those that begin while the one before them ends, and clusters."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prism_bench.backends.cuda.driver import library
from prism_bench.errors import BackendUnavailable

FIRST_CAPABILITY = 90
_CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
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
    attribute = _Attribute(_SERIALIZATION, 0, (ctypes.c_int * _VALUE_WORDS)(1))
    return _call(_Prepared(attribute, function, driver or library()), extents, values, stream)


def clustered_call(
    function: int, extents: LaunchExtents, cluster: _Triple, values: Sequence[Any], stream: Callable[[], int]
) -> Callable[[], None]:
    """Return a function that launches the driver's `function` on `stream()` in clusters of so many blocks.

    The grid of `extents` counts clusters, as that of a compiler with its own idea of a block does.
    """
    attribute = _Attribute(_CLUSTER, 0, (ctypes.c_int * _VALUE_WORDS)(*cluster))
    x, y, z = (blocks * each for blocks, each in zip(extents.grid, cluster, strict=True))
    whole = LaunchExtents((x, y, z), extents.block, extents.shared)
    return _call(_Prepared(attribute, function, library()), whole, values, stream)


@dataclass(frozen=True)
class _Prepared:
    """A driver's function that is launched with one attribute."""

    attribute: _Attribute
    function: int
    driver: Any


def _call(
    prepared: _Prepared, extents: LaunchExtents, values: Sequence[Any], stream: Callable[[], int]
) -> Callable[[], None]:
    held = [np.asarray([value.data.ptr], np.uint64) if _is_array(value) else np.asarray([value]) for value in values]
    parameters = (ctypes.c_void_p * len(held))(*(one.ctypes.data for one in held))
    configuration = _Configuration(
        (ctypes.c_uint * 3)(*extents.grid),
        (ctypes.c_uint * 3)(*extents.block),
        extents.shared,
        None,
        ctypes.pointer(prepared.attribute),
        1,
    )

    def call() -> None:
        configuration.stream = stream()
        pointers = parameters if held else None  # they point into the arrays that are held
        launch = prepared.driver.cuLaunchKernelEx
        status = launch(ctypes.byref(configuration), ctypes.c_void_p(prepared.function), pointers, None)
        if status:
            raise BackendUnavailable(f"cuLaunchKernelEx failed with error {status}")

    return call


def _is_array(value: Any) -> bool:
    return hasattr(value, "data") and hasattr(value.data, "ptr")
