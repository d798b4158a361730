"""Products by cuBLASLt with its epilogues, through nvmath's bindings: the fastest algorithm that its heuristic offers.

nvmath's own `Matmul` gives results of 16 bits for such operands; the bindings give FP32 results, as the kernels do.
"""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

import numpy as np

from prism_bench.backends import kept_choice

Epilogue = Literal["", "relu", "gelu"]  # GELU in the tanh form

ALGORITHMS = 32  # asked of the heuristic, which ranks them
WORKSPACE = 64 << 20  # bytes
TRIED_SECONDS = 1.0  # of device time spent on trying algorithms, at most


@dataclass(frozen=True)
class Form:
    """Precision and epilogue of a product: operands rounded to TF32, a function after the bias."""

    tf32: bool = False
    epilogue: Epilogue = ""


def product(nvmath: ModuleType, a: Any, b: Any, bias: Any | None = None, form: Form | None = None) -> Callable[[], Any]:
    """Return a call that computes epilogue(a b + bias) in FP32 by the fastest algorithm.

    Parameters
    ----------
    nvmath : module
        The library.
    a, b : torch.Tensor
        Matrices [m, k] and [k, n] of one dtype, each contiguous or the transpose of a contiguous one.
    bias : torch.Tensor, optional
        One FP32 number for each of the n columns.
    form : Form, optional
        Precision and epilogue.

    Returns
    -------
    callable
        Enqueues the product on the current stream and returns the matrix [m, n], the same one each time.
    """
    planned = LtProduct(nvmath, a, b, bias, form or Form())
    planned.choose()
    return planned


class LtProduct:
    """A product planned with cuBLASLt.

    cuBLASLt counts in columns: the row-major [m, n] result is its [n, m] matrix, from the operands in reverse.
    """

    def __init__(self, nvmath: ModuleType, a: Any, b: Any, bias: Any | None, form: Form) -> None:
        self._lt = _bindings("cublasLt")
        self._torch = import_module("torch")
        self._kept, self._form = (b, a, bias), form
        self._out = a.new_empty((a.shape[0], b.shape[1]), dtype=self._torch.float32)
        self._workspace = a.new_empty(WORKSPACE, dtype=self._torch.uint8)
        self._one, self._zero = np.ones(1, "float32"), np.zeros(1, "float32")
        self._handle = _handle()
        self._plan = _Plan(self._lt, nvmath, form)
        self._layouts = [self._plan.layout(one) for one in (b.T, a.T, self._out.T)]
        self._plan.transpose(b.T, a.T)
        self._plan.epilogue(bias)
        self._algorithm: Any = None
        weakref.finalize(self, self._plan.close)

    def __call__(self) -> Any:
        """Enqueue the product on the current stream."""
        self._enqueue(self._algorithm)
        return self._out

    def choose(self) -> None:
        """Keep the fastest of the algorithms, or the one that an earlier process of the run chose so."""
        b, a, bias = self._kept
        operands = [(tuple(one.shape), _by_columns(one), one.dtype) for one in (a, b, self._out)]
        device = self._torch.cuda.get_device_name()
        known = "cublasLt", self._lt.get_version(), device, self._form, bias is not None, *operands
        chosen = kept_choice(known, self._fastest)
        self._algorithm = np.frombuffer(chosen, "uint8").copy()

    def _fastest(self) -> bytes:
        """Return the fastest of the algorithms, each timed after one call to warm up."""
        spent, best, fastest = 0.0, float("inf"), b""
        for algorithm in self._offered():
            seconds = self._seconds(algorithm)
            if seconds < best:
                best, fastest = seconds, algorithm.tobytes()
            spent += 4 * seconds
            if spent > TRIED_SECONDS:
                break
        return fastest

    def _offered(self) -> Iterator[Any]:
        found = np.zeros(1, "int32")
        results = self._lt.MatmulHeuristicResult(ALGORITHMS)
        b, a, out = self._layouts
        self._lt.matmul_algo_get_heuristic(
            self._handle, self._plan.descriptor, b, a, out, out, self._plan.preference, ALGORITHMS, results.ptr,
            found.ctypes.data,
        )  # fmt: skip
        if not found[0]:
            raise RuntimeError("cuBLASLt's heuristic offers no algorithm for this product")
        for index in range(int(found[0])):
            yield results[index : index + 1]["algo"].copy()

    def _seconds(self, algorithm: Any) -> float:
        """Return the device time of one call, from three."""
        begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._enqueue(algorithm)
        begin.record()
        for _ in range(3):
            self._enqueue(algorithm)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 3e3

    def _enqueue(self, algorithm: Any) -> None:
        b, a, out = self._layouts
        right, left, _ = self._kept
        result = self._out.data_ptr()
        self._lt.matmul(
            self._handle, self._plan.descriptor, self._one.ctypes.data, right.data_ptr(), b, left.data_ptr(), a,
            self._zero.ctypes.data, result, out, result, out, algorithm.ctypes.data, self._workspace.data_ptr(),
            WORKSPACE, self._torch.cuda.current_stream().cuda_stream,
        )  # fmt: skip


class _Plan:
    """The descriptors of one product."""

    def __init__(self, lt: ModuleType, nvmath: ModuleType, form: Form) -> None:
        self._lt, self._types, self._form = lt, nvmath.CudaDataType, form
        compute = _bindings("cublas").ComputeType
        kind = compute.COMPUTE_32F_FAST_TF32 if form.tf32 else compute.COMPUTE_32F
        self.descriptor = lt.matmul_desc_create(kind, self._types.CUDA_R_32F)
        self.preference = lt.matmul_preference_create()
        self._layouts: list[int] = []
        attribute = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
        kept = np.array([WORKSPACE], lt.get_matmul_preference_attribute_dtype(attribute))
        lt.matmul_preference_set_attribute(self.preference, attribute, kept.ctypes.data, kept.nbytes)

    def layout(self, matrix: Any) -> int:
        """Return the layout of memory whose columns, or rows, are contiguous."""
        name = {"float32": "CUDA_R_32F", "float16": "CUDA_R_16F", "bfloat16": "CUDA_R_16BF"}
        rows, cols = matrix.shape if _by_columns(matrix) else reversed(matrix.shape)
        stride = matrix.stride(1) if _by_columns(matrix) else matrix.stride(0)
        kind = getattr(self._types, name[str(matrix.dtype).removeprefix("torch.")])
        made = self._lt.matrix_layout_create(kind, rows, cols, stride)
        self._layouts.append(made)
        return made

    def transpose(self, first: Any, second: Any) -> None:
        """Turn over the operands whose rows are contiguous."""
        for name, matrix in (("TRANSA", first), ("TRANSB", second)):
            self._set(name, 0 if _by_columns(matrix) else 1)

    def epilogue(self, bias: Any | None) -> None:
        """Set what follows the product."""
        names = [self._form.epilogue.upper(), "BIAS" if bias is not None else ""]
        self._set("EPILOGUE", self._lt.Epilogue["_".join(filter(None, names)) or "DEFAULT"])
        if bias is not None:
            self._set("BIAS_POINTER", bias.data_ptr())

    def close(self) -> None:
        """Destroy the descriptors."""
        for layout in self._layouts:
            self._lt.matrix_layout_destroy(layout)
        self._lt.matmul_preference_destroy(self.preference)
        self._lt.matmul_desc_destroy(self.descriptor)

    def _set(self, name: str, value: int) -> None:
        attribute = self._lt.MatmulDescAttribute[name]
        kept = np.array([value], self._lt.get_matmul_desc_attribute_dtype(attribute))
        self._lt.matmul_desc_set_attribute(self.descriptor, attribute, kept.ctypes.data, kept.nbytes)


def _by_columns(matrix: Any) -> bool:
    return matrix.stride(0) == 1


@cache
def _handle() -> int:
    """Return cuBLASLt's handle of this process."""
    return _bindings("cublasLt").create()


def _bindings(name: str) -> ModuleType:
    return import_module(f"nvmath.bindings.{name}")
