"""A device in host memory for the referee's tests. Its machine code is the name of a Python function."""

import os
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from prism_bench.errors import SpecError
from prism_bench.extensions.judge.referee.buffers import RefereeDevice
from prism_bench.extensions.judge.referee.messages import FactsAnswer, StepPlan
from prism_bench.extensions.judge.referee.referee import digest_of
from prism_bench.spec.inputs import InputArray
from prism_bench.spec.launch import MAP_TYPE, TensorMap

BASE = 1 << 20
LAUNCHES = count(1)
OVERHEAD, USUAL = 1e-6, 5e-3  # far more than a busy host's clock may stall by in a launch
FACTS = FactsAnswer("a fake device", "fake-0", 4, 48 << 10, 90, 1 << 20, OVERHEAD, 0.0, 42)


class FakeDevice(RefereeDevice):
    """`state` is what a module's variables hold, `outside` whatever survives a module."""

    def __init__(self) -> None:
        self.memory = np.zeros(1 << 20, np.uint8)
        self.state: dict[str, Any] = {}
        self.outside: dict[str, Any] = {"calls": 0}
        self.seconds, self.left = USUAL, 0.0
        self._next = 0
        self._code: Callable[..., None] = honest

    def facts(self) -> FactsAnswer:
        return FACTS

    def load(self, cubins: Sequence[bytes], symbols: Sequence[tuple[int, str]]) -> dict[str, int]:
        self.state = {}
        for cubin in cubins:
            self._code = KERNELS[cubin.decode()]
        return {"kept": 8} if any(b"keeps" in cubin for cubin in cubins) else {}

    def restore_variables(self) -> None:
        self.state = {}

    def allocate(self, size: int) -> int:
        self._next += -(-size // 256) * 256
        if self._next > self.memory.size:
            raise MemoryError(f"{size} bytes")
        return BASE + self._next - -(-size // 256) * 256

    def free_all(self) -> None:
        self._next = 0

    def fill(self, address: int, size: int, value: int) -> None:
        self.view(address, size)[:] = value

    def randomize(self, address: int, size: int, key: int) -> None:
        self.view(address, size)[:] = np.random.default_rng(key).integers(0, 256, size, np.uint8)

    def is_filled(self, address: int, size: int, value: int) -> bool:
        return bool((self.view(address, size) == value).all())

    def digest(self, address: int, size: int) -> int:
        return digest_of(self.view(address, size))

    def lay_out(self, address: int, content: InputArray) -> None:
        values = np.asarray(content.on(np)).reshape(-1).view(np.uint8)
        self.view(address, values.size)[:] = values

    def read(self, address: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return self.view(address, size).copy().view(dtype).reshape(shape)

    def tensor_map(self, wanted: TensorMap, address: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        if shape[-1] % 4:
            raise SpecError("a tensor map needs rows of whole 16 bytes")
        found = np.zeros(1, MAP_TYPE)
        found["map"][0, :3] = address, wanted.lines, wanted.tf32
        return found

    def call(self, step: StepPlan, values: Sequence[int | np.generic | np.ndarray]) -> Callable[[], None]:
        return lambda: self._code(self, *values)

    def timed(self, call: Callable[[], None], *, cold: bool) -> float | None:
        self.seconds = USUAL
        time.sleep(1.2 * USUAL)
        call()
        return self.seconds

    def leftover(self) -> float:
        return self.left

    def synchronize(self) -> None:
        pass

    def view(self, address: int, size: int) -> np.ndarray:
        return self.memory[int(address) - BASE : int(address) - BASE + size]

    def floats(self, address: int, count: int) -> np.ndarray:
        return self.view(address, 4 * int(count)).view(np.float32)


def honest(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    device.outside["calls"] += 1
    device.floats(c, n)[:] = device.floats(a, n) + device.floats(b, n)


def takes_a_map(device: FakeDevice, a: np.ndarray, b: int, c: int, n: int) -> None:
    """Its first argument is a tensor map, which has the address of the buffer and the lines of its boxes."""
    address, lines, tf32 = map(int, a["map"][0, :3])
    assert (3, 1) == (lines, tf32)
    honest(device, address, b, c, n)


def flushes_subnormals(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    honest(device, a, b, c, n)
    output = device.floats(c, n)
    output[np.abs(output) < np.finfo(np.float32).tiny] = 0


def skips_work_later(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    if device.outside["calls"] < 4:
        honest(device, a, b, c, n)


def keeps_its_first_result(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    """Replay what an earlier launch left in a variable of the module: harmless where variables are restored."""
    honest(device, a, b, c, n)
    device.floats(c, n)[:] = device.state.setdefault("kept", device.floats(c, n).copy())


def caches_by_address(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    honest(device, a, b, c, n)
    device.floats(c, n)[:] = device.outside.setdefault(a, device.floats(c, n).copy())


def writes_past_the_end(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    honest(device, a, b, c, n)
    device.floats(c, n + 1)[-1] = 0


def changes_an_input(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    honest(device, a, b, c, n)
    device.floats(a, n)[0] += 1


def leaves_work_behind(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    honest(device, a, b, c, n)
    device.left = 0.1


def is_faster_than_an_empty_kernel(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    honest(device, a, b, c, n)
    device.seconds = OVERHEAD / 2


def turns_the_clock_back(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    """The device's clock names less than the referee sees pass."""
    honest(device, a, b, c, n)
    time.sleep(8e-3)
    device.seconds = 2e-3


def turns_the_clock_on(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    honest(device, a, b, c, n)
    device.seconds = 1e3


def differs_in_a_bit(device: FakeDevice, a: int, b: int, c: int, n: int) -> None:
    """As atomic additions do: right, and never the same. Each launch of this process adds one bit more."""
    honest(device, a, b, c, n)
    device.floats(c, n)[:1].view(np.uint32)[0] += next(LAUNCHES)


def hangs(device: FakeDevice, *_: int) -> None:
    time.sleep(60)


def faults(device: FakeDevice, *_: int) -> None:
    os.write(2, b"CUDARuntimeError: an illegal memory access was encountered\n")
    os._exit(1)


KERNELS: dict[str, Callable[..., None]] = {
    one.__name__: one
    for one in (
        honest, flushes_subnormals, skips_work_later, keeps_its_first_result, caches_by_address, writes_past_the_end,
        changes_an_input, leaves_work_behind, is_faster_than_an_empty_kernel, turns_the_clock_back, turns_the_clock_on,
        differs_in_a_bit, takes_a_map, hangs, faults,
    )
}  # fmt: skip
