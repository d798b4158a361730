"""A fake device under a fake sanitizer, which sees what its "kernels" do, and writes that as the real tool does."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from prism_bench.extensions.judge.referee.buffers import RefereeDevice
from prism_bench.extensions.judge.referee.messages import FactsAnswer, StepPlan
from prism_bench.extensions.judge.referee.runner import RunnerService
from prism_bench.extensions.judge.referee.sanitizer import LARGEST_LOG, WatchedRunner
from prism_bench.spec.inputs import InputArray
from tests.extensions.judge.fake_device import BASE, KERNELS, FakeDevice
from tests.extensions.judge.near_runner import NearRunner

GAP = 256  # bytes between allocations, as the padding of memcheck


class WatchedDevice(FakeDevice):
    """A device whose allocations have their own size; bytes are written by launches, inputs and fillings alone."""

    check = os.environ.get("FAKE_SANITIZER_CHECK", "")

    def __init__(self) -> None:
        super().__init__()
        self.allocations: list[tuple[int, int]] = []
        self.written = np.zeros(self.memory.size, bool)

    def facts(self) -> FactsAnswer:
        raise AssertionError("facts are times, which nothing has under a sanitizer")

    def load(self, cubins: Sequence[bytes], symbols: Sequence[tuple[int, str]]) -> dict[str, int]:
        if cubins:
            self._code = WATCHED.get(cubins[0].decode(), KERNELS["honest"])
        return {}

    def allocate(self, size: int) -> int:
        address = super().allocate(size + GAP)
        self.allocations.append((address, size))
        return address

    def free_all(self) -> None:
        super().free_all()
        self.allocations, self.written[:] = [], False

    def fill(self, address: int, size: int, value: int) -> None:
        super().fill(address, size, value)
        self.written[address - BASE : address - BASE + size] = True

    def lay_out(self, address: int, content: InputArray) -> None:
        super().lay_out(address, content)
        self.written[address - BASE : address - BASE + np.asarray(content.on(np)).nbytes] = True

    def randomize(self, address: int, size: int, key: int) -> None:
        raise AssertionError("what is poisoned is written")

    def digest(self, address: int, size: int) -> int:
        raise AssertionError("a digest reads what may be unwritten")

    def timed(self, call: Callable[[], None], *, cold: bool) -> float | None:
        raise AssertionError("nothing has a time under a sanitizer")

    def call(self, step: StepPlan, values: Sequence[int | np.generic | np.ndarray]) -> Callable[[], None]:
        return lambda: self._code(self, *values)

    def floats(self, address: int, count: int) -> np.ndarray:
        if not any(one <= address and address + 4 * count <= one + size for one, size in self.allocations):
            self.report("memcheck", "Invalid __global__ read of size 4 bytes")
        return super().floats(address, count)

    def read_floats(self, address: int, count: int) -> np.ndarray:
        if not self.written[address - BASE : address - BASE + 4 * count].all():
            self.report("initcheck", "Uninitialized __global__ memory read of size 4 bytes")
        return self.floats(address, count)

    def report(self, check: str, words: str, kernel: str = "attack(float const*, float*, long)") -> None:
        if check == self.check:
            place = f"\n=========     at {kernel}+0xb0 in /home/somebody/attack.cu:4\n=========     by thread (0,0,0)"
            self.write(f"========= {words}{place}\n========= \n")

    def write(self, text: str) -> None:
        with Path(os.environ["FAKE_SANITIZER_LOG"]).open("a") as log:
            log.write(text)


class NearWatchedDevice(WatchedDevice):
    """The device of a runner in this process; its words reach the log at once, or `late`: when the program ends."""

    def __init__(self, check: str, late: bool) -> None:
        super().__init__()
        self.check, self.late, self.log, self.kept = check, late, b"========= COMPUTE-SANITIZER\n", b""

    def write(self, text: str) -> None:
        if self.late:
            self.kept += text.encode()
        else:
            self.log += text.encode()


class NearWatchedRunner(NearRunner, WatchedRunner):
    """A watched runner in this process."""

    def __init__(self, check: str, *, late: bool = False, ending: bytes = b"") -> None:
        self._device = NearWatchedDevice(check, late)
        self._service = RunnerService(self._device)
        counted = b"RACECHECK" if check == "racecheck" else b"ERROR"
        self._ending = ending or b"========= " + counted + b" SUMMARY: 0 errors\n"

    def written(self) -> int:
        return len(self._device.log)

    def finish(self) -> int | None:
        self._device.log += self._device.kept + self._ending
        return 0

    def log(self) -> bytes:
        return self._device.log[:LARGEST_LOG]


def open_watched() -> RefereeDevice:
    """Open the device of a runner that the fake sanitizer started."""
    return WatchedDevice()


def _honest(device: WatchedDevice, a: int, b: int, c: int, n: int) -> None:
    KERNELS["honest"](device, a, b, c, n)
    first = (int(c) - BASE, int(c) - BASE + 4 * int(n))
    device.written[first[0] : first[1]] = True


def reads_past_the_end(device: WatchedDevice, a: int, b: int, c: int, n: int) -> None:
    device.floats(a, n + 1)
    _honest(device, a, b, c, n)


def reads_past_the_end_of_small_ones(device: WatchedDevice, a: int, b: int, c: int, n: int) -> None:
    (reads_past_the_end if n < 300 else _honest)(device, a, b, c, n)


def reads_the_output_first(device: WatchedDevice, a: int, b: int, c: int, n: int) -> None:
    device.read_floats(c, n)
    _honest(device, a, b, c, n)


def races_in_shared_memory(device: WatchedDevice, a: int, b: int, c: int, n: int) -> None:
    device.report("racecheck", "Error: Race reported between Write access at attack+0xb0 in /x/attack.cu:7")
    _honest(device, a, b, c, n)


def warns_of_a_race(device: WatchedDevice, a: int, b: int, c: int, n: int) -> None:
    device.report("racecheck", "Warning: Race reported between Write access at attack+0xb0 in /x/attack.cu:7")
    _honest(device, a, b, c, n)


def forges_words_of_the_tool(device: WatchedDevice, a: int, b: int, c: int, n: int) -> None:
    """Print what the tool might write: a finding of another kernel, and a summary without errors."""
    for words in ("========= Invalid __global__ read of size 4 bytes", "========= ERROR SUMMARY: 0 errors"):
        os.write(1, f"{words}\n".encode())
        os.write(2, f"{words}\n".encode())
    _honest(device, a, b, c, n)


def is_called_like_a_summary(device: WatchedDevice, a: int, b: int, c: int, n: int) -> None:
    """Read past the end in a kernel whose name, which is the stranger's, has lines of the tool and of the judge."""
    name = "attack\n========= ERROR SUMMARY: 0 errors\n@@ end elsewhere[n=1]\n@@ begin elsewhere[n=1]\n\x1b[2J"
    device.report("memcheck", "Invalid __global__ read of size 4 bytes", name)
    _honest(device, a, b, c, n)


def faults_when_watched(device: WatchedDevice, a: int, b: int, c: int, n: int) -> None:
    device.report("memcheck", "Invalid __global__ write of size 4 bytes")
    os.write(2, b"CUDARuntimeError: an illegal memory access was encountered\n")
    os._exit(1)


def hangs_when_watched(device: WatchedDevice, *_: int) -> None:
    time.sleep(60)


WATCHED: dict[str, Callable[..., None]] = {
    one.__name__: one
    for one in (
        reads_past_the_end, reads_past_the_end_of_small_ones, reads_the_output_first, races_in_shared_memory,
        warns_of_a_race, forges_words_of_the_tool, is_called_like_a_summary, faults_when_watched, hangs_when_watched,
    )
}  # fmt: skip


def near(check: str) -> WatchedRunner:
    return NearWatchedRunner(check)
