"""A runner in this process, on a fake device, for tests of the referee: fixtures, rules, and a session of one case."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from random import Random

import numpy as np
import pytest

from prism_bench.backends.numpy_reference import open_backend
from prism_bench.catalogue import discover
from prism_bench.extensions.judge.referee.client import ContestantCode
from prism_bench.extensions.judge.referee.messages import Answer, Question
from prism_bench.extensions.judge.referee.referee import RefereeRules
from prism_bench.extensions.judge.referee.runner import RunnerService
from prism_bench.extensions.judge.referee.session import Contestant, MachineState, RefereeFindings, RefereeSession
from prism_bench.io.channels import Frame
from prism_bench.io.workers import Refusal
from prism_bench.spec.case import Case
from tests.extensions.judge.fake_device import FakeDevice

HERE = Path(__file__).parent
WRONG = {"wrong": True}
RULES = RefereeRules(blocks=2, samples=4, warmups=1, launch_seconds=2.0, clock_pause=0.0)
LARGE = replace(RULES, small_bytes=0, whole=1.0)  # outputs of all sizes count as large


class NearRunner:
    """A runner in this process."""

    def __init__(self, device: FakeDevice) -> None:
        self._service = RunnerService(device)

    def ask(self, question: Question, arrays: Sequence[np.ndarray], limit: float) -> Frame[Answer]:
        answer, results = self._service.reply(Frame(question, tuple(arrays)))
        if isinstance(answer, Refusal):
            raise answer.error()
        return Frame(answer, tuple(results))

    def end(self) -> None:
        pass


def session(device: FakeDevice | None = None, rules: RefereeRules = RULES) -> RefereeSession:
    """Return a session on a device that is as before afterwards; each runner has a new one, where none is given."""
    return RefereeSession(
        lambda: NearRunner(device or FakeDevice()), open_backend, Random(5), rules, state=lambda facts: MachineState()
    )


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    spec = discover(HERE / "tasks").kernel("add")
    return Case(spec, spec.workloads["S0"], "S0")


@pytest.fixture(autouse=True)
def any_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prism_bench.compilation.cubin.elf_entries", lambda cubin: {})


def judged(
    case: Case, code: str, device: type[FakeDevice] = FakeDevice, states: Sequence[MachineState] = ()
) -> RefereeFindings:
    before, *after = states or [MachineState()]
    shown = chain([before], after, repeat(after[-1] if after else before))
    session = RefereeSession(
        lambda: NearRunner(device()), open_backend, Random(5), RULES, state=lambda facts: next(shown)
    )
    session.run(Contestant(code, "submission", [case], ContestantCode(code.encode(), {"add": "add"})))
    session.close()
    return session.findings
