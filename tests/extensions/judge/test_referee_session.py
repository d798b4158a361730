"""A session of the referee: all cases of a submission, the task's own kernel, turns on a device, its state after."""

import os
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Literal

import msgspec
import pytest

from prism_bench.backends.null import NullBackend
from prism_bench.backends.numpy_reference import open_backend
from prism_bench.catalogue import discover
from prism_bench.catalogue.catalogue import edge_cases
from prism_bench.extensions.judge.jail_client import JailCell
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.referee import session as machine
from prism_bench.extensions.judge.referee.client import ContestantCode, KeptRunner
from prism_bench.extensions.judge.referee.referee import RefereeRules
from prism_bench.extensions.judge.referee.sanitizer import LaunchWatch
from prism_bench.extensions.judge.referee.session import Contestant, MachineState, RefereeFindings, RefereeSession
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import EVIDENCE, JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import CheckedCase, JudgedTime, Objection
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import AnyArray
from prism_bench.spec.kernel import InOut, KernelSpec
from prism_bench.spec.workload import Workload
from tests.extensions.judge import fake_device, near_runner
from tests.extensions.judge.fake_device import FACTS, FakeDevice
from tests.extensions.judge.near_runner import HERE, LARGE, RULES, WRONG, NearRunner, judged
from tests.extensions.judge.watched_device import near

case, any_parameters = near_runner.case, near_runner.any_parameters  # fixtures


def test_a_machine_that_a_neighbour_disturbs_is_looked_at_again(case: Case) -> None:
    found = judged(case, "honest", states=[MachineState(), MachineState(overhead=1e-3), MachineState()])
    assert [] == found.objections
    assert "as before" in found.evidence["machine afterwards"]


def test_judgements_on_one_device_take_turns(case: Case) -> None:
    entered = threading.Event()

    def second() -> None:
        with machine.device_turn("fake-0"):
            entered.set()

    with machine.device_turn("fake-0"):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert not entered.wait(0.3)
    waiting.join(10)
    assert entered.is_set()


@pytest.mark.parametrize(("rules", "repeating"), [(RULES, 0), (LARGE, 1)])
def test_one_runner_serves_all_cases_and_another_repeats_large_ones(
    case: Case, rules: RefereeRules, repeating: int
) -> None:
    started: list[FakeDevice] = []

    def start() -> NearRunner:
        started.append(FakeDevice())
        return NearRunner(started[-1])

    cases = [case, Case(case.spec, Workload(n=2000), "hidden")]
    session = RefereeSession(start, open_backend, Random(5), rules, state=lambda facts: MachineState())
    assert cases == session.run(Contestant("sent", "submission", cases, ContestantCode(b"honest", {"add": "add"})))
    assert 2 + repeating == len(started), "one to ask for the device, one to time, one to repeat"


def test_launches_of_the_tasks_own_kernel_are_repeated_by_no_other_process(case: Case) -> None:
    started: list[FakeDevice] = []

    def start() -> NearRunner:
        started.append(FakeDevice())
        return NearRunner(started[-1])

    session = RefereeSession(start, open_backend, Random(5), LARGE, state=lambda facts: MachineState())
    for kind in ("kernel", "submission"):
        assert [case] == session.run(Contestant("add", kind, [case], ContestantCode(b"honest", {"add": "add"})))
    own, timing, repeating = (one.outside["calls"] for one in started)
    assert own == timing >= RULES.blocks * (RULES.warmups + RULES.samples)
    assert RULES.blocks * (RULES.warmups + RULES.samples) == repeating


def test_a_submission_never_runs_where_the_state_of_the_machine_is_read(case: Case) -> None:
    started: list[FakeDevice] = []

    def start() -> NearRunner:
        started.append(FakeDevice())
        return NearRunner(started[-1])

    trusted, code = KeptRunner(start), ContestantCode(b"honest", {"add": "add"})
    kinds: tuple[Literal["submission", "kernel"], ...] = ("submission", "submission", "kernel")
    for kind in kinds:
        session = RefereeSession(
            start, open_backend, Random(5), RULES, state=lambda facts: MachineState(), trusted=trusted
        )
        assert [case] == session.run(Contestant("sent", kind, [case], code))
        session.close()
        assert [] == session.findings.objections
        assert (kind == "kernel") == bool(started[0].outside["calls"])
    assert 3 == len(started), "judgements share the trusted one; each submission has its own"


def test_edges_are_launched_on_a_gpu_too_and_have_no_time(case: Case) -> None:
    edge = next(one for one in edge_cases(case.spec, None) if one.edge)
    none = next(one for one in edge_cases(case.spec, None) if one.workload == Workload(n=0))

    def run(code: str) -> RefereeFindings:
        session = RefereeSession(
            lambda: NearRunner(FakeDevice()), open_backend, Random(5), RULES, state=lambda facts: MachineState()
        )
        session.run(Contestant("sent", "submission", [edge, none, case], ContestantCode(code.encode(), {"add": "add"})))
        return session.findings

    honest = run("honest")
    assert [("cuda", True), ("cuda, timed launches", True)] == [(one.where, one.right) for one in honest.checked]
    assert ["[n=3000]"] == [one.case for one in honest.times]
    flushing = run("flushes_subnormals")
    assert ("outputs", edge.name) == (flushing.objections[0].rule, flushing.objections[0].case)


def test_a_submission_and_the_kernel_of_its_task_are_timed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_device.FakeDevice, "facts", lambda self: msgspec.structs.replace(FACTS, bandwidth=1e9))
    states = iter([MachineState()] * 2)
    session = RefereeSession(
        lambda: NearRunner(FakeDevice()), open_backend, Random(5), RULES, state=lambda facts: next(states)
    )
    peers = NullBackend({"add[*": {"peers": {"lib": {"seconds": 2e-3}, "odd": WRONG}}})
    gpu = OnGpu(session, backend=lambda: peers, watch=lambda: LaunchWatch(near))
    monkeypatch.setattr(gpu, "_own_code", lambda task, cases: ContestantCode(b"honest", {"add": "add"}))
    monkeypatch.setattr(SubmissionTrial, "_compile", compiled)
    found = discover(HERE / "tasks")
    trial = SubmissionTrial(
        read_submission(HERE / "museum" / "honest.toml"), JudgeTask(found.kernel("add"), found), ("90",), False, gpu=gpu
    )
    monkeypatch.setattr(trial, "_run", lambda spec, cell: None)
    ended = list[bool]()
    monkeypatch.setattr(JailCell, "end", lambda cell: ended.append(bool(session.findings.times)))
    monkeypatch.setattr(trial, "hidden", lambda known: [Case(known[0].spec, Workload(n=2000), "hidden")])
    verdict = trial.verdict()
    assert ("right", []) == (verdict.ruling, list(verdict.objections))
    assert [False, True] == ended, "no process of the stranger's runs while anything is timed"
    assert Counter(kernel=2, submission=2, ceiling=2, peer=2) == Counter(one.kind for one in verdict.times)
    assert {"lib", "memory bus, by its clock and width"} <= {one.subject for one in verdict.times}
    assert 2000 * 12 / 1e9 in {one.seconds for one in verdict.times if one.kind == "ceiling"}
    assert ["PrismBenchError" in words for words in verdict.unjudged] == [True, True], (
        "a peer that is wrong has no time"
    )
    assert (("honest[n=2000]",), ["[n=2000]"]) == (verdict.hidden, list(verdict.scored))
    assert 0.5 < verdict.score < 2
    assert "state of the machine" in verdict.defences
    assert "as before: processes, environment, working folder, folders" == verdict.evidence[EVIDENCE]
    assert {"GPU, kernel: launches", "GPU, submission: launches", "GPU, peers", "GPU, machine afterwards"} <= set(
        verdict.seconds
    ), "each part of it has its seconds"
    samples = RULES.blocks * RULES.samples
    assert {samples} == {len(one.seeds) for one in verdict.times if one.kind in ("kernel", "submission")}


def test_what_the_tasks_peers_start_is_not_the_submissions(case: Case) -> None:
    session = RefereeSession(
        lambda: NearRunner(FakeDevice()), open_backend, Random(5), RULES, state=lambda facts: MachineState()
    )
    gpu = OnGpu(session)
    with subprocess.Popen(["sleep", "60"]) as before:
        with gpu._starting():
            started = subprocess.Popen(["sleep", "60"])
        assert {started.pid} == gpu.started
        for one in (before, started):
            one.kill()
            one.wait()


def test_what_peers_leave_in_the_environment_is_taken_back(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_USER", "before")
    before = dict(os.environ)
    with OnGpu(near_runner.session())._starting():
        os.environ.update(OF_THE_USER="after", OF_A_COMPILER="folder")
    assert before == dict(os.environ)


def test_the_secret_of_a_verdict_draws_the_same_seeds_again(case: Case) -> None:
    def seeds(secret: int) -> tuple[int, ...]:
        session = RefereeSession(
            lambda: NearRunner(FakeDevice()), open_backend, Random(f"GPU {secret}"), RULES,
            state=lambda facts: MachineState(),
        )  # fmt: skip
        session.run(Contestant("sent", "submission", [case], ContestantCode(b"honest", {"add": "add"})))
        return session.findings.times[0].seeds

    assert seeds(7) == seeds(7) != seeds(8)


def test_a_hidden_size_at_which_the_own_kernel_is_wrong_counts_for_nothing(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        fake_device.KERNELS, "short", lambda device, a, b, c, n: n == 3000 and fake_device.honest(device, a, b, c, n)
    )
    session = RefereeSession(
        lambda: NearRunner(FakeDevice()), open_backend, Random(5), RULES, state=lambda facts: MachineState()
    )
    gpu, hidden = OnGpu(session, backend=NullBackend), Case(case.spec, Workload(n=2000), "hidden")
    monkeypatch.setattr(gpu, "_own_code", lambda task, cases: ContestantCode(b"short", {"add": "add"}))
    found = gpu.judge(case.spec, case.spec, [case, hidden], ContestantCode(b"short", {"add": "add"}))
    assert [] == found.objections
    assert {"[n=3000]"} == {one.case for one in found.times}
    assert any("add[n=2000]: it counts for nothing" in words for words in found.unjudged)
    assert any("times of peers" in words for words in found.unjudged)
    assert any("ceilings" in words for words in found.unjudged)


@pytest.mark.parametrize(("reference", "is_right"), [(lambda x: x + 1, False), (lambda x: x, True)])
def test_a_card_that_launches_nothing_leaves_what_was_there(
    case: Case, reference: Callable[[AnyArray], AnyArray], is_right: bool
) -> None:
    """An argument in place holds an input then, which only a task that asks for nothing takes."""
    spec = replace(case.spec, arguments=(InOut("x", "n"),), launch=lambda: (), reference=reference)
    still = Case(spec, case.workload, "S0")
    session = RefereeSession(
        lambda: NearRunner(FakeDevice()), open_backend, Random(5), RULES, state=lambda facts: MachineState()
    )
    assert [] == session.run(Contestant("sent", "submission", [still], ContestantCode(b"honest", {})))
    assert is_right == (not session.findings.objections)


def test_a_time_is_compared_with_the_kernels_whatever_the_submission_is_called(case: Case) -> None:
    """Else a slow one has a score of 1, as one that was not timed with it."""
    session = RefereeSession(
        lambda: NearRunner(FakeDevice()), open_backend, Random(5), RULES, state=lambda facts: MachineState()
    )
    sent = Case(replace(case.spec, name="slow[n=7] [x"), case.workload, "S0")
    for kind, one in (("kernel", case), ("submission", sent)):
        session.run(Contestant(one.spec.name, kind, [one], ContestantCode(b"honest", {"add": "add"})))
    assert ["[n=3000]"] * 2 == [one.case for one in session.findings.times]
    assert [] == session.findings.untimed()


def test_what_a_gpu_has_no_time_of_is_not_right(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission that is slow would be better off with no time at all."""
    found, times = discover(HERE / "tasks"), dict[str, JudgedTime]()
    for kind in ("kernel", "submission"):
        times[kind] = JudgedTime("[n=3000]", kind, kind, 2e-3, 1e-3, 3e-3)
    right = CheckedCase(case.name, "emulator, fast, forward", True)

    def ruling(*kinds: str, without_code: bool = False) -> str:
        session = RefereeSession(
            lambda: NearRunner(FakeDevice()), open_backend, Random(5), RULES, state=lambda facts: MachineState()
        )
        trial = SubmissionTrial(
            read_submission(HERE / "museum" / "honest.toml"), JudgeTask(found.kernel("add"), found), ("90",), False,
            gpu=OnGpu(session), checked=[right],
            timed=None if without_code else RefereeFindings(times=[times[kind] for kind in kinds]),
        )  # fmt: skip
        return trial._ruling()

    assert "right" == ruling("kernel", "submission") == ruling("submission")
    assert "unchecked" == ruling("kernel") == ruling(without_code=True)


def compiled(trial: SubmissionTrial, spec: KernelSpec, cell: JailCell) -> None:
    trial.built["90"] = ContestantCode(b"honest", {"attack": "attack"})


def test_runners_start_before_the_emulator_works_and_end_with_a_verdict_without_launches(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, ended = list[NearRunner](), list[NearRunner]()

    class CountedRunner(NearRunner):
        def __init__(self) -> None:
            super().__init__(FakeDevice())
            started.append(self)

        def end(self) -> None:
            ended.append(self)

    def run(trial: SubmissionTrial, spec: KernelSpec, cell: JailCell) -> None:
        assert (2, 0) == (len(started), len(ended)), "one that reported the device, and one that launches"
        trial.objections.append(Objection("outputs", "wrong"))

    session = RefereeSession(CountedRunner, open_backend, Random(5), RULES, state=lambda facts: MachineState())
    monkeypatch.setattr(SubmissionTrial, "_compile", compiled)
    monkeypatch.setattr(SubmissionTrial, "_run", run)
    found = discover(HERE / "tasks")
    trial = SubmissionTrial(
        read_submission(HERE / "museum" / "honest.toml"), JudgeTask(found.kernel("add"), found), ("90",), False,
        gpu=OnGpu(session),
    )  # fmt: skip
    assert "wrong" == trial.verdict().ruling
    assert 2 == len(started) == len(ended)
