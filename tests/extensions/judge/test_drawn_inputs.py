"""Inputs of a seed are drawn once, outputs that were right are not compared again, and runners start ahead."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from threading import Event

import numpy as np
import pytest

from prism_bench.backends.numpy_reference import open_backend
from prism_bench.extensions.judge.referee import referee, runner
from prism_bench.extensions.judge.referee.client import ReadyRunners
from prism_bench.extensions.judge.referee.messages import Answer, FactsQuestion, Question
from prism_bench.extensions.judge.referee.referee import DrawnInputs
from prism_bench.extensions.judge.referee.session import MachineState, RefereeSession
from prism_bench.io.channels import Frame
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import InputArray
from tests.extensions.judge import fake_device, near_runner
from tests.extensions.judge.fake_device import FakeDevice
from tests.extensions.judge.near_runner import RULES, NearRunner, judged

case, any_parameters = near_runner.case, near_runner.any_parameters  # fixtures
LAUNCHES = RULES.blocks * (RULES.samples + RULES.warmups)


def test_what_two_processes_agree_on_is_drawn_and_compared_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    compared: list[int] = []

    def inputs(self: Case, seed: int = 0) -> dict[str, InputArray]:
        drawn.append(seed)
        return self.correctness.inputs(seed)

    def compare_outputs(
        backend: object, case: Case, inputs: object, outputs: Mapping[str, np.ndarray], seed: int
    ) -> Sequence[object]:
        compared.append(seed)
        return []

    monkeypatch.setattr(Case, "inputs", inputs)
    monkeypatch.setattr("prism_bench.extensions.judge.referee.session.compare_outputs", compare_outputs)
    assert [] == judged(case, "honest").objections
    assert (LAUNCHES, LAUNCHES) == (len(drawn), len(compared))
    assert sorted(set(drawn)) == sorted(drawn) == sorted(compared)


def test_only_the_latest_inputs_are_kept(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = DrawnInputs(case.inputs)
    monkeypatch.setattr(referee, "KEPT_BYTES", 2 * sum(one.block.nbytes for one in inputs(1).values()))
    first, second = inputs(1), inputs(2)
    assert first is inputs(1)
    inputs(3)
    assert first is inputs(1)
    assert second is not inputs(2)
    assert np.array_equal(second["a"].block, inputs(2)["a"].block)


def test_what_is_expected_is_drawn_before_it_is_asked_for(case: Case) -> None:
    drawn = {seed: Event() for seed in range(4)}

    def draw(seed: int) -> Mapping[str, InputArray]:
        drawn[seed].set()
        if seed == 3:
            raise ValueError("no such inputs")
        return case.inputs(seed)

    with DrawnInputs(draw) as inputs:
        inputs.expect([0, 1, 2, 3])
        assert all(drawn[seed].wait(30) for seed in (0, 1))
        assert not drawn[2].is_set()
        first = inputs(0)
        assert drawn[2].wait(30)
        assert first is inputs(0)
        for seed in (1, 2):
            assert np.array_equal(inputs(seed)["a"].block, case.inputs(seed)["a"].block)
        with pytest.raises(ValueError, match="no such inputs"):
            inputs(3)


def test_of_large_outputs_those_of_a_blocks_first_launch_are_compared(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    monkeypatch.setattr(near_runner, "RULES", replace(RULES, small_bytes=0, whole=0.0))
    monkeypatch.setattr(
        "prism_bench.extensions.judge.referee.session.compare_outputs",
        lambda backend, case, inputs, outputs, seed: compared.append(seed) or [],
    )
    assert [] == judged(case, "honest").objections
    assert RULES.blocks == len(set(compared)) == len(compared)


def test_runners_are_started_ahead_and_those_left_over_end() -> None:
    started: list[NearRunner] = []
    ended: list[NearRunner] = []

    class CountedRunner(NearRunner):
        def __init__(self) -> None:
            super().__init__(FakeDevice())
            started.append(self)

        def end(self) -> None:
            ended.append(self)

    session = RefereeSession(CountedRunner, open_backend, Random(1), RULES, state=lambda facts: MachineState())
    assert (1, 0) == (len(started), len(ended)), "it reported the device"
    with session.ready(3):
        assert 4 == len(started)
        session.close()
        assert (4, 1) == (len(started), len(ended)), "it reported the device again, and ended"
    assert (4, 4) == (len(started), len(ended))
    session.close()
    assert 5 == len(started)
    with ReadyRunners(CountedRunner, 1) as runners:
        assert [runners(), runners()] == started[5:]


def test_a_process_opens_its_device_with_the_first_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is started ahead holds no memory of it meanwhile."""
    opened: list[FakeDevice] = []

    class Channel:
        """Asks for the facts twice."""

        def serve(self, decoder: object, reply: Callable[[Frame[Question]], tuple[Answer, object]]) -> None:
            assert [] == opened
            assert [fake_device.FACTS] * 2 == [reply(Frame(FactsQuestion()))[0] for _ in range(2)]

    monkeypatch.setattr(runner, "end_with", lambda descriptor: None)
    monkeypatch.setattr(runner.FrameChannel, "inherited", lambda descriptor: Channel())
    monkeypatch.setattr(fake_device, "open_noted", lambda: opened.append(FakeDevice()) or opened[0], raising=False)
    runner.main("0", f"{fake_device.__name__}:open_noted")
    assert 1 == len(opened)
