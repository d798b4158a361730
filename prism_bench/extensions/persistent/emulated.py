"""The queue kernel on the emulator, in a thread of its own: its waits let the blocks take turns."""

from threading import Thread

import numpy as np

from prism_bench.case import Device
from prism_bench.emulator import HostBuffer, compile_source
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.persistent.layout import DESK_WORDS
from prism_bench.extensions.persistent.machine import Machine
from prism_bench.extensions.persistent.program import ALIGNMENT
from prism_bench.files import shared_with

UNLIMITED = 1e7  # seconds of patience: a queue kernel that waits for work makes no progress, and the watchdog is ours


def open_machine() -> "EmulatedMachine":
    """The emulator's machine; that there is no compiler shows when something is compiled."""
    return EmulatedMachine()


class EmulatedMachine(Machine):
    """All memory is this process's own."""

    device = Device()

    def settle_in(self, served):
        self._memory = np.zeros(served.workspace_bytes + ALIGNMENT, np.uint8)
        start = -self._memory.ctypes.data % ALIGNMENT
        self._workspace = self._memory[start : start + served.workspace_bytes]
        for program in served.programs:
            for name, one in program.fields.items():
                self._at(served.offsets[program.name, name], one.nbytes)[:] = one.first_byte

    def serve(self, served, board):
        self._error = None
        module = compile_source(served.source, shared_with(served.source), (served.entry,))
        pulse, requests, answers = map(HostBuffer, board.arrays())
        desk = np.zeros(DESK_WORDS, np.uint64)
        words = [requests, answers, pulse, desk, served.words, HostBuffer(self._workspace)]
        sizes = [np.int32(board.slots), np.int32(served.words.size)]
        launch = (served.entry, self.device.sm_count, served.threads, [*words, *sizes])
        self._thread = Thread(target=self._run, args=(module, launch, served.shared), daemon=True)
        self._thread.start()

    def serving(self):
        if self._error:
            raise self._error
        return self._thread.is_alive()

    def launcher(self, served, program):
        if not program.steps:
            return lambda: None
        entries = tuple(dict.fromkeys(step.entry for step in program.steps))
        module = compile_source(program.source, shared_with(program.source), entries)
        calls = [
            (step.entry, step.grid, step.block, self._arguments(served, program, step), step.shared)
            for step in program.steps
        ]
        return lambda: self._launch(module, calls)

    def write(self, offset, values):
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._at(offset, raw.size)[:] = raw

    def read(self, offset, nbytes):
        return self._at(offset, nbytes).tobytes()

    def _at(self, offset, nbytes):
        return self._workspace[offset : offset + nbytes]

    def _run(self, module, launch, shared):
        try:
            report = module.launch(*launch, shared_bytes=shared, cooperative=True, patience=UNLIMITED)
            if report.findings:
                self._error = BackendUnavailable(f"the queue kernel ended: {report.findings[0]}")
        except Exception as error:  # told by `serving`, in the thread that asks
            self._error = error

    def _arguments(self, served, program, step):
        return [self._buffer(served, program, one) if isinstance(one, str) else one for one in step.arguments]

    def _buffer(self, served, program, name):
        one = program.field(name)
        place = self._at(served.offsets[program.name, name], one.nbytes)
        return HostBuffer(place.view(one.dtype))

    def _launch(self, module, calls):
        for entry, grid, block, arguments, shared in calls:
            report = module.launch(entry, grid, block, arguments, shared_bytes=shared, patience=UNLIMITED)
            if report.findings:
                raise BackendUnavailable(f"{entry} ended: {report.findings[0]}")
