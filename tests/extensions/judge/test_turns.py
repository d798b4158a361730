"""Judgements share a device: each has it for what works there, and no longer; the seconds of its parts are noted."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random

import numpy as np
import pytest

from prism_bench.backends.numpy_reference import open_backend
from prism_bench.errors import UsageError
from prism_bench.extensions.judge.referee import session
from prism_bench.extensions.judge.referee.client import ContestantCode, RunnerClient, case_plan
from prism_bench.extensions.judge.referee.messages import Answer, FactsQuestion, InputsQuestion, Question
from prism_bench.extensions.judge.referee.referee import WAITING, DeviceTurns, PhaseClock
from prism_bench.extensions.judge.referee.session import Contestant, MachineState, RefereeSession
from prism_bench.io.channels import Frame
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import InputArray
from tests.extensions.judge import near_runner
from tests.extensions.judge.fake_device import FakeDevice
from tests.extensions.judge.near_runner import RULES, NearRunner

case, any_parameters = near_runner.case, near_runner.any_parameters  # fixtures


class Holder:
    """Who has the device."""

    def __init__(self) -> None:
        self.turns, self.is_held = 0, False

    @contextmanager
    def turn(self, uuid: str) -> Iterator[None]:
        assert not self.is_held, "a turn within a turn waits for ever"
        self.turns, self.is_held = self.turns + 1, True
        try:
            yield
        finally:
            self.is_held = False


def test_the_device_is_held_while_it_works_and_not_while_the_host_does(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, compared = Holder(), list[int]()
    in_main = threading.current_thread()

    class Watching(NearRunner):
        def ask(self, question: Question, arrays: Sequence[np.ndarray], limit: float) -> Frame[Answer]:
            if not isinstance(question, FactsQuestion):  # the first one is what starts a process
                assert holder.is_held != isinstance(question, InputsQuestion)
            return super().ask(question, arrays, limit)

    def inputs(self: Case, seed: int = 0) -> Mapping[str, InputArray]:
        assert threading.current_thread() is not in_main or not holder.is_held
        return self.correctness.inputs(seed)

    def compare_outputs(*given: object) -> Sequence[object]:
        assert not holder.is_held
        compared.append(1)
        return []

    monkeypatch.setattr(session, "device_turn", holder.turn)
    monkeypatch.setattr(session, "compare_outputs", compare_outputs)
    monkeypatch.setattr(Case, "inputs", inputs)
    made = RefereeSession(
        lambda: Watching(FakeDevice()), open_backend, Random(5), RULES, state=lambda facts: MachineState()
    )
    assert [case] == made.run(Contestant("sent", "submission", [case], ContestantCode(b"honest", {"add": "add"})))
    launches = RULES.blocks * (RULES.samples + RULES.warmups)
    assert launches == len(compared)
    assert holder.turns > 2 * launches
    assert {"GPU, submission: launches", "GPU, submission: comparisons", f"GPU, submission: {WAITING}",
            "GPU, submission: inputs", "GPU, machine before"} <= set(made.clock.seconds)  # fmt: skip


def test_who_waits_for_a_device_is_next(case: Case) -> None:
    """`case` gives the test a cache of its own."""
    waiting, has_it = threading.Event(), threading.Event()

    def second() -> None:
        waiting.set()
        with session.device_turn("fake-0"):
            has_it.set()

    with session.device_turn("fake-0"):
        other = threading.Thread(target=second)
        other.start()
        assert waiting.wait(10)
        time.sleep(0.2)
    with session.device_turn("fake-0"):
        assert has_it.is_set()
    other.join(10)


def test_seconds_count_for_the_inner_phase_alone() -> None:
    clock = PhaseClock()
    turns = DeviceTurns(clock=clock, whose="GPU, kernel")
    begin = time.perf_counter()
    with clock.phase("GPU"):
        with turns.taken("launches"), turns.phase("inputs"):
            time.sleep(0.05)
        with pytest.raises(ValueError, match="odd"), turns.taken("launches"):
            raise ValueError("odd")
    took = time.perf_counter() - begin
    assert {"GPU", "GPU, kernel: launches", f"GPU, kernel: {WAITING}", "GPU, kernel: inputs"} == set(clock.seconds)
    assert clock.seconds["GPU, kernel: inputs"] >= 0.05
    assert sum(clock.seconds.values()) <= took + 0.002


def test_a_launch_has_the_inputs_that_were_sent_for_it(case: Case) -> None:
    code, code_of = ContestantCode(b"honest", {"add": "add"}), (b"honest",)
    plan, _ = case_plan(case, Device(), code)
    with RunnerClient(NearRunner(FakeDevice()), 2.0) as client:
        with pytest.raises(UsageError, match="nothing is loaded"):
            client.give(case.inputs(1))
        client.load(plan, code_of)
        for seed in (1, 2):
            client.give(case.inputs(seed))
            client.launch(7)
            inputs = case.inputs(seed)
            assert np.array_equal(client.outputs()["c"], inputs["a"].on(np) + inputs["b"].on(np))
            with pytest.raises(UsageError, match="no inputs were sent"):
                client.launch(7)
        client.give(case.inputs(3))
        client.load(plan, code_of)
        with pytest.raises(UsageError, match="no inputs were sent"):
            client.launch(7)
