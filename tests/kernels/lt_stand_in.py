"""Stand-ins on the host for PyTorch's tensors and for cuBLASLt's bindings, which multiply by NumPy."""

import ctypes
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

COSTS = (5.0, 2.0, 3.0)  # milliseconds of the algorithms, as the heuristic ranks them


class Tensor(np.ndarray):
    """An array with the methods of a PyTorch tensor that set-ups call."""

    def stride(self, axis: int) -> int:
        return self.strides[axis] // self.itemsize

    def data_ptr(self) -> int:
        return self.ctypes.data

    def new_empty(self, shape: Any, dtype: str) -> "Tensor":
        return np.zeros(shape, dtype).view(Tensor)


def tensor(array: Any) -> Tensor:
    return np.ascontiguousarray(array).view(Tensor)


class Clock:
    """Device time: calls advance it, and events read it."""

    def __init__(self) -> None:
        self.milliseconds = 0.0


def torch_stand_in(clock: Clock) -> ModuleType:
    """Return PyTorch's dtypes, its current stream and its events."""

    class Event:
        at = 0.0

        def __init__(self, enable_timing: bool) -> None: ...

        def record(self) -> None:
            self.at = clock.milliseconds

        def synchronize(self) -> None: ...

        def elapsed_time(self, end: "Event") -> float:
            return end.at - self.at

    made: Any = ModuleType("torch")
    made.float32, made.uint8 = "float32", "uint8"
    made.cuda = SimpleNamespace(Event=Event, current_stream=lambda: SimpleNamespace(cuda_stream=7), get_device_name=str)
    return made


class Attribute(IntEnum):
    """Attributes of a product."""

    TRANSA = 1
    TRANSB = 2
    EPILOGUE = 3
    BIAS_POINTER = 4
    MAX_WORKSPACE_BYTES = 5


class Epilogue(IntEnum):
    """What follows a product."""

    DEFAULT = 1
    RELU = 2
    BIAS = 4
    RELU_BIAS = 6
    GELU = 32
    GELU_BIAS = 36


class HeuristicResults:
    """What the heuristic fills: one record for each algorithm."""

    kind = np.dtype([("algo", "u8", (8,))])

    def __init__(self, size: int) -> None:
        self._data = np.zeros(size, self.kind)
        self.ptr = self._data.ctypes.data

    def __getitem__(self, index: slice) -> Any:
        return self._data[index]


class CublasLt:
    """The calls of nvmath.bindings.cublasLt that a product needs; `calls` lists its algorithms and streams."""

    MatmulDescAttribute = MatmulPreferenceAttribute = Attribute
    Epilogue = Epilogue
    MatmulHeuristicResult = HeuristicResults

    def __init__(self, clock: Clock) -> None:
        self.clock, self.calls, self.alive = clock, [], set()
        self.compute: list[object] = []
        self._made: dict[int, Any] = {}

    def create(self) -> int:
        return 1

    def get_version(self) -> int:
        return 130000

    def matmul_desc_create(self, compute: object, scale: object) -> int:
        self.compute.append(compute)
        return self._keep({})

    def matmul_preference_create(self) -> int:
        return self._keep({})

    def matrix_layout_create(self, kind: str, rows: int, cols: int, stride: int) -> int:
        return self._keep((np.dtype(kind), rows, cols, stride))

    def matmul_desc_destroy(self, made: int) -> None:
        self.alive.remove(made)

    matmul_preference_destroy = matrix_layout_destroy = matmul_desc_destroy

    def get_matmul_desc_attribute_dtype(self, attribute: Attribute) -> type[np.generic]:
        return np.int64 if attribute is Attribute.BIAS_POINTER else np.int32

    def get_matmul_preference_attribute_dtype(self, attribute: Attribute) -> type[np.generic]:
        return np.uint64

    def matmul_desc_set_attribute(self, made: int, attribute: Attribute, buffer: int, size: int) -> None:
        self._made[made][attribute] = int.from_bytes(ctypes.string_at(buffer, size), "little")

    matmul_preference_set_attribute = matmul_desc_set_attribute

    def matmul_algo_get_heuristic(self, *given: int) -> None:
        *_, wanted, results, found = given
        assert wanted >= len(COSTS)
        for index in range(len(COSTS)):
            ctypes.c_uint64.from_address(results + 64 * index).value = index
        ctypes.c_int32.from_address(found).value = len(COSTS)

    def matmul(self, *given: int) -> None:
        _, plan, _, first, a, second, b, _, _, _, result, out, algorithm, _, _, stream = given
        index = ctypes.c_uint64.from_address(algorithm).value
        self.calls.append((index, stream))
        self.clock.milliseconds += COSTS[index]
        chosen = self._made[plan]
        left = self._matrix(first, a, chosen[Attribute.TRANSA])
        product = left.astype("float32") @ self._matrix(second, b, chosen[Attribute.TRANSB]).astype("float32")
        self._matrix(result, out, 0)[:] = self._followed(product, chosen)

    def _followed(self, product: np.ndarray, chosen: dict[Attribute, int]) -> np.ndarray:
        epilogue = Epilogue(chosen[Attribute.EPILOGUE])
        if epilogue.name.endswith("BIAS"):
            pointer = ctypes.cast(chosen[Attribute.BIAS_POINTER], ctypes.POINTER(ctypes.c_float))
            product = product + np.ctypeslib.as_array(pointer, (len(product),))[:, None]
        return np.maximum(product, 0) if epilogue.name.startswith("RELU") else product

    def _matrix(self, pointer: int, layout: int, turned: int) -> np.ndarray:
        """Return the memory as cuBLASLt sees it: by columns, `turned` over where the operation says so."""
        kind, rows, cols, stride = self._made[layout]
        memory = (ctypes.c_char * (kind.itemsize * stride * cols)).from_address(pointer)
        matrix = np.frombuffer(memory, kind).reshape(cols, stride)[:, :rows].T
        return matrix.T if turned else matrix

    def _keep(self, made: object) -> int:
        number = len(self._made) + 1
        self._made[number] = made
        self.alive.add(number)
        return number
