"""Peers by cuStateVec, called through its C interface: its Python bindings need five more libraries.

A gate works in place. The peer applies it to a copy of the state that the set-up makes, again and again; its first
call gives the result that is verified.
"""

from collections.abc import Callable, Sequence
from ctypes import CDLL, POINTER, byref, c_int, c_int32, c_size_t, c_uint32, c_void_p
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import finalize

import numpy as np

from prism_bench.spec import AnyArray

COMPLEX_FLOAT, ROW_MAJOR, FLOAT_PRODUCTS = 4, 1, 4  # CUDA_C_32F, CUSTATEVEC_MATRIX_LAYOUT_ROW, CUSTATEVEC_COMPUTE_32F
LIBRARY = "libcustatevec.so.1"


def gate(
    cuquantum: ModuleType, psi: AnyArray, matrix: Any, targets: Sequence[int], controls: Sequence[int] = ()
) -> Callable[[], AnyArray]:
    """Return a call that applies a gate's matrix to a copy of the state."""
    return Register(cuquantum, psi.copy()).gate(matrix, targets, controls)


class Register:
    """A state vector of the case and a handle of cuStateVec on the current stream.

    Parameters
    ----------
    cuquantum : module
        The package whose folder `lib` holds the library.
    state : array
        The amplitudes, [states, 2] of float32; gates change them.
    """

    def __init__(self, cuquantum: ModuleType, state: AnyArray) -> None:
        cupy = import_module("cupy")
        cupy.cuda.device.get_cublas_handle()  # loads cuBLAS, which the library needs
        self._library, self.state = opened(str(folder(cuquantum))), state
        self._qubits, self._handle = len(state).bit_length() - 1, c_void_p()
        self._check(self._library.custatevecCreate(byref(self._handle)))
        finalize(self, self._library.custatevecDestroy, self._handle)
        self._check(self._library.custatevecSetStream(self._handle, c_void_p(cupy.cuda.get_current_stream().ptr)))
        self._empty = cupy.empty

    def gate(self, matrix: Any, targets: Sequence[int], controls: Sequence[int] = ()) -> Callable[[], AnyArray]:
        """Return a call that multiplies the amplitudes of the targets by the matrix, where every control is 1."""
        values, ones = np.ascontiguousarray(matrix, "complex64"), [1] * len(controls)
        count, function = (len(targets), len(controls)), self._library.custatevecApplyMatrix
        space = self._space(values, *count)
        arguments = (
            *self._vector(), c_void_p(values.ctypes.data), c_int(COMPLEX_FLOAT), c_int(ROW_MAJOR), c_int32(0),
            numbers(targets), c_uint32(count[0]), numbers(controls), numbers(ones), c_uint32(count[1]),
            c_int(FLOAT_PRODUCTS), c_void_p(space.data.ptr), c_size_t(space.size),
        )  # fmt: skip
        kept = (values, space)  # alive as long as the call
        return self._calling(function, arguments, self.state, kept)

    def probabilities(self, qubits: Sequence[int]) -> Callable[[], AnyArray]:
        """Return a call that sums |psi|^2 for every outcome of the qubits, the first one the lowest bit; in float64."""
        result = self._empty(1 << len(qubits), "float64")
        arguments = (*self._vector(), c_void_p(result.data.ptr), numbers(qubits), c_uint32(len(qubits)),
                     numbers(()), numbers(()), c_uint32(0))  # fmt: skip
        return self._calling(self._library.custatevecAbs2SumArray, arguments, result, ())

    def _vector(self) -> tuple[Any, ...]:
        return (self._handle, c_void_p(self.state.data.ptr), c_int(COMPLEX_FLOAT), c_uint32(self._qubits))

    def _space(self, values: AnyArray, targets: int, controls: int) -> AnyArray:
        size = c_size_t()
        query = self._library.custatevecApplyMatrixGetWorkspaceSize
        self._check(query(
            self._handle, c_int(COMPLEX_FLOAT), c_uint32(self._qubits), c_void_p(values.ctypes.data),
            c_int(COMPLEX_FLOAT), c_int(ROW_MAJOR), c_int32(0), c_uint32(targets), c_uint32(controls),
            c_int(FLOAT_PRODUCTS), byref(size),
        ))  # fmt: skip
        return self._empty(max(1, size.value), "uint8")

    def _calling(
        self, function: Callable[..., int], arguments: tuple[Any, ...], result: AnyArray, kept: object
    ) -> Callable[[], AnyArray]:
        def call(kept: object = kept) -> AnyArray:
            self._check(function(*arguments))
            return result

        return call

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"cuStateVec reports status {status}")


def numbers(values: Sequence[int]) -> Any:
    """Return 32-bit integers as C has them; a null pointer for none."""
    return (c_int32 * len(values))(*values) if values else POINTER(c_int32)()


def folder(cuquantum: ModuleType) -> Path:
    """Return the folder of the library; a FileNotFoundError if the package has none."""
    for place in cuquantum.__path__:
        if (Path(place) / "lib" / LIBRARY).exists():
            return Path(place) / "lib"
    raise FileNotFoundError(f"no {LIBRARY} in {', '.join(cuquantum.__path__)}")


@cache
def opened(place: str) -> CDLL:
    """Load the library once."""
    return CDLL(str(Path(place) / LIBRARY))
