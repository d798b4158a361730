"""The emulator with its work in a jail: what a submission's source does on the CPU, it does there.

Inputs, references and comparisons stay in this process, which never opens the source's include files or libraries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from prism_bench.backends.base import Runnable
from prism_bench.backends.emulator import EmulatorBackend, EmulatorRunnable
from prism_bench.emulator.messages import pack_arguments
from prism_bench.emulator.report import LaunchReport
from prism_bench.emulator.request import LaunchRequest
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.cell import JailCell
from prism_bench.extensions.judge.judged_spec import LARGEST_EMULATED, check_scratch
from prism_bench.extensions.judge.messages import HostLaunchQuestion
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray

TOO_MANY = "too many threads"  # a finding about this machine's memory, not about the kernel


class JailedModule:
    """A source built for the CPU in a cell, for the backend's runnables."""

    def __init__(self, cell: JailCell, build: int) -> None:
        self._cell, self._build = cell, build

    def run(self, request: LaunchRequest, arguments: Sequence[object], *, isolate: bool = True) -> LaunchReport:
        """Run a kernel in the cell; buffers hold its results afterwards. It is always isolated."""
        places, arrays = pack_arguments(arguments)
        request = replace(request, patience=self._cell.limits.patience)
        frame = self._cell.launch(HostLaunchQuestion(self._build, request, places), arrays)
        for sent, result in zip(arrays, frame.arrays, strict=True):
            if sent.size and sent.flags.writeable:
                sent[...] = result
        findings = frame.message.report.findings
        if findings and all(one.kind == TOO_MANY for one in findings):
            raise BackendUnavailable(findings[0].message)
        return frame.message.report

    def close(self) -> None:
        """Leave the build to the cell."""


class JailedEmulator(EmulatorBackend):
    """The emulator's backend for one submission, whose work is done in a cell."""

    def __init__(self, cell: JailCell, mode: str = "fast", order: str = "forward") -> None:
        super().__init__(mode, order)
        self._cell = cell

    def prepare(self, case: Case, inputs: Mapping[str, InputArray]) -> Runnable:
        own = case.plan.entries(self.device)
        lacking = self._cell.lacking(case.spec.source_file, own, case.spec.options)
        if lacking:
            raise BackendUnavailable(next(iter(lacking.values())))
        check_scratch(case, LARGEST_EMULATED)
        return EmulatorRunnable(self, case, inputs)

    def watching(self) -> EmulatorBackend:
        return JailedEmulator(self._cell, "race", self.order)

    def build(self, source: Path, entries: tuple[str, ...], options: tuple[str, ...]) -> JailedModule:
        lacking = self._cell.lacking(source, entries, options)  # of other cases: this one's are all run here
        entries = tuple(one for one in entries if one not in lacking)
        return JailedModule(self._cell, self._cell.build(source, entries, self.mode, options))
