"""A cell believes no answer of a process that may run a stranger's code, not even that this machine fails."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.emulator.request import LaunchRequest
from prism_bench.errors import BackendUnavailable, CompilationFailed, PrismBenchError, VerificationFailed
from prism_bench.extensions.judge.cell import JailCell
from prism_bench.extensions.judge.messages import HostLaunchQuestion
from prism_bench.workers.frames import Frame
from prism_bench.workers.refusal import Refusal


class AnsweringCell(JailCell):
    """A cell whose process has one answer."""

    def __init__(self, answer: object) -> None:
        super().__init__(Path("/tmp"), jailed=False)
        self._answer = answer

    def _started(self) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
        received = Frame(self._answer, ())
        return SimpleNamespace(
            channel=SimpleNamespace(send=lambda *given: None, receive=lambda *given: received), kill=lambda: None
        )


QUESTION = HostLaunchQuestion(0, LaunchRequest("mine", (1, 1, 1), (1, 1, 1)), ())


@pytest.mark.parametrize("kind", ["UsageError", "ProfilerError", "PrismBenchError", "nothing"])
def test_a_process_of_a_stranger_reports_findings_alone(kind: str) -> None:
    cell = AnsweringCell(Refusal(kind, "no jail can be made here"))
    with pytest.raises(CompilationFailed, match="while it was compiled"):
        cell.machine_code(Path("mine.cu"), ("mine",), "90")
    with pytest.raises(VerificationFailed, match="mine: "):
        cell.launch(QUESTION, ())


@pytest.mark.parametrize("kind", [BackendUnavailable, CompilationFailed, VerificationFailed])
def test_what_a_compiler_and_an_emulator_find_is_passed_on(kind: type[PrismBenchError]) -> None:
    with pytest.raises(kind, match="found"):
        AnsweringCell(Refusal(kind.__name__, "found")).machine_code(Path("mine.cu"), ("mine",), "90")
