"""The queue kernel on the emulator, in its own thread: its waits let the blocks take turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread

import numpy as np

from prism_bench.emulator import HostBuffer, LaunchReport, Module, compile_source
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.persistent.board import Board
from prism_bench.extensions.persistent.layout import DESK_WORDS
from prism_bench.extensions.persistent.machine import Machine
from prism_bench.extensions.persistent.program import ALIGNMENT, Program, Served, ServedStep
from prism_bench.io.files import shared_with
from prism_bench.spec.case import Device

UNLIMITED = 1e7  # seconds of patience: a queue kernel that waits for work makes no progress, and the watchdog is ours


def open_machine() -> "EmulatedMachine":
    """Return the emulator's machine; a missing compiler is reported when something is compiled."""
    return EmulatedMachine()


@dataclass(frozen=True)
class EmulatedLaunch:
    """A launch of the queue kernel, or of a program's kernel."""

    entry: str
    grid: int | tuple[int, ...]
    block: int
    arguments: Sequence[object]
    shared: int

    def run(self, module: Module, cooperative: bool = False) -> LaunchReport:
        """Launch the kernel and return the report of its end."""
        return module.launch(
            self.entry, self.grid, self.block, self.arguments,
            shared_bytes=self.shared, cooperative=cooperative, patience=UNLIMITED,
        )  # fmt: skip


class EmulatedMachine(Machine):
    """The emulator, whose memory is this process's own."""

    device = Device()
    _error: Exception | None = None

    def settle_in(self, served: Served) -> None:
        self._memory = np.zeros(served.workspace_bytes + ALIGNMENT, np.uint8)
        start = -self._memory.ctypes.data % ALIGNMENT
        self._workspace = self._memory[start : start + served.workspace_bytes]
        for program in served.programs:
            for name, one in program.fields.items():
                self._at(served.offsets[program.name, name], one.nbytes)[:] = one.first_byte

    def serve(self, served: Served, board: Board) -> None:
        self._error = None
        module = compile_source(served.source, shared_with(served.source), (served.entry,))
        pulse, requests, answers = map(HostBuffer, board.arrays())
        desk = np.zeros(DESK_WORDS, np.uint64)
        words = [requests, answers, pulse, desk, served.words, HostBuffer(self._workspace)]
        sizes = [np.int32(board.slots), np.int32(served.words.size)]
        launch = EmulatedLaunch(served.entry, self.device.sm_count, served.threads, [*words, *sizes], served.shared)
        self._thread = Thread(target=self._run, args=(module, launch), daemon=True)
        self._thread.start()

    def serving(self) -> bool:
        if self._error:
            raise self._error
        return self._thread.is_alive()

    def launcher(self, served: Served, program: Program) -> Callable[[], None]:
        if not program.steps or program.source is None:
            return lambda: None
        entries = tuple(dict.fromkeys(step.entry for step in program.steps))
        module = compile_source(program.source, shared_with(program.source), entries)
        calls = [
            EmulatedLaunch(step.entry, step.grid, step.block, self._arguments(served, program, step), step.shared)
            for step in program.steps
        ]
        return lambda: self._launch(module, calls)

    def write(self, offset: int, values: np.ndarray) -> None:
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._at(offset, raw.size)[:] = raw

    def read(self, offset: int, nbytes: int) -> bytes:
        return self._at(offset, nbytes).tobytes()

    def _at(self, offset: int, nbytes: int) -> np.ndarray:
        return self._workspace[offset : offset + nbytes]

    def _run(self, module: Module, launch: EmulatedLaunch) -> None:
        try:
            report = launch.run(module, cooperative=True)
            if report.findings:
                self._error = BackendUnavailable(f"the queue kernel ended: {report.findings[0]}")
        except Exception as error:  # raised by `serving`, in the thread that calls it
            self._error = error

    def _arguments(self, served: Served, program: Program, step: ServedStep) -> list[object]:
        return [self._buffer(served, program, one) if isinstance(one, str) else one for one in step.arguments]

    def _buffer(self, served: Served, program: Program, name: str) -> HostBuffer:
        one = program.field(name)
        place = self._at(served.offsets[program.name, name], one.nbytes)
        return HostBuffer(place.view(one.dtype))

    def _launch(self, module: Module, calls: Sequence[EmulatedLaunch]) -> None:
        for call in calls:
            report = call.run(module)
            if report.findings:
                raise BackendUnavailable(f"{call.entry} ended: {report.findings[0]}")
