"""Guard of a case's outputs on the device: small kernels on the timed stream, and no copies until results are read."""

from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench.backends.base import POOL, ROOM, SHARE, OutputGuard, StrayElement
from prism_bench.backends.cuda.device import CudaDevice
from prism_bench.compilation import compile_source

_SOURCE = Path(__file__).with_name("guard.cu")
_ENTRIES = ("remember", "spoil", "compare", "overwrite_at_random", "choose", "digest", "nudge")
_THREADS = 256
_ALL = 2**64 - 1


class CudaGuard(OutputGuard):
    """`outputs` and `scratch` are device arrays by name; `in_place` names outputs that `restore` puts back."""

    def __init__(
        self,
        cupy: ModuleType,
        device: CudaDevice,
        outputs: dict,
        *,
        in_place: Collection[str] = (),
        scratch: Iterable[Any] = (),
        inputs: Iterable[Any] = (),
        key: int,
    ) -> None:
        self._cupy, self._blocks = cupy, 4 * device.sm_count
        self._kernels = guard_kernels(cupy, str(device.compute_capability))
        self._in_place, self._scratch = set(in_place), list(scratch)
        self._outputs = {name: array for name, array in outputs.items() if array.size}
        self._places = {
            name: self._remembered(array, (key + number) & _ALL)
            for number, (name, array) in enumerate(self._outputs.items())
        }
        self._noted = cupy.zeros(1 + 4 * ROOM, np.uint64)
        self._sums = cupy.zeros(len(self._outputs), np.uint64)
        floats = [array for array in inputs if array.size and array.dtype.kind == "f"]
        self._nudged = floats[key % len(floats)] if floats else None
        self._state = cupy.asarray(np.array([0, 0, 0, 0, key & _ALL], np.uint64))

    def spoil(self, key: int) -> None:
        for name, (grid, arguments) in self._places.items():
            if name not in self._in_place:
                self._kernels["spoil"](grid, (_THREADS,), (*arguments, np.uint64(key), np.int32(SHARE)))

    def overwrite(self, key: int) -> None:
        for number, (name, array) in enumerate(self._outputs.items()):
            if name not in self._in_place:
                arguments = array, np.int64(array.nbytes), np.uint64((key + number) & _ALL)
                self._kernels["overwrite_at_random"]((self._blocks,), (_THREADS,), arguments)
        self.clear_scratch()

    def clear_scratch(self) -> None:
        for array in self._scratch:
            array.data.memset_async(0, array.nbytes)

    def compare(self, sample: int, key: int, *, rewritten: bool = False) -> None:
        for number, (name, (grid, arguments)) in enumerate(self._places.items()):
            if rewritten and name in self._in_place:
                continue
            facts = np.uint64(key), np.int32(SHARE), np.int32(rewritten), np.int32(sample), np.int32(number)
            self._kernels["compare"](grid, (_THREADS,), (*arguments, *facts, self._noted, np.int32(ROOM)))

    def strays(self) -> list[StrayElement]:
        noted = self._noted.get()
        self._noted.fill(0)
        names, count = list(self._outputs), min(int(noted[0]), ROOM)
        entries = noted[1 : 1 + 4 * count].reshape(count, 4).tolist()
        return [StrayElement(sample, names[output], at, bits) for sample, output, at, bits in entries]

    def digests(self) -> dict[str, int]:
        self._sums.fill(0)
        for number, array in enumerate(self._outputs.values()):
            arguments = array, np.int64(array.nbytes), self._sums, np.int32(number)
            self._kernels["digest"]((self._blocks,), (_THREADS,), arguments)
        return dict(zip(self._outputs, self._sums.get().tolist(), strict=True))

    def nudge(self, key: int) -> bool:
        if self._nudged is None:
            return False
        self._nudge(0)
        return True

    def mend(self) -> None:
        if self._nudged is not None:
            self._nudge(1)

    def _nudge(self, only_mend: int) -> None:
        array: Any = self._nudged
        where = array, np.int64(array.size), np.int32(array.itemsize)
        self._kernels["nudge"]((1,), (1,), (*where, self._state, np.int32(ROOM), np.int32(only_mend)))

    def _remembered(self, array: Any, key: int) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Grid and first arguments of the kernels that look at the output's places."""
        size = array.itemsize // (2 if array.dtype.kind == "c" else 1)
        count = array.nbytes // size
        pool = min(POOL, count)
        want, grid = self._cupy.empty(pool, np.uint64), (-(-pool // _THREADS),)
        arguments = array, np.int64(count), np.int32(size), np.int32(pool), np.uint64(key), want
        self._kernels["remember"](grid, (_THREADS,), arguments)
        return grid, arguments


@cache
def guard_kernels(cupy: ModuleType, architecture: str) -> dict[str, Any]:
    """Return the kernels of `guard.cu` by entry, loaded once."""
    compiled = compile_source(_SOURCE, _ENTRIES, architecture)
    module = cupy.RawModule(path=str(compiled.path))
    return {entry: module.get_function(compiled.lowered[entry]) for entry in _ENTRIES}
