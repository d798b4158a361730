"""The referee: what a launch does wrong is seen from another process, whatever the launch does there."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain, repeat
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest

from prism_bench.backends.null import NullBackend
from prism_bench.backends.numpy_reference import open_backend
from prism_bench.case import Case, Device
from prism_bench.catalogue import discover
from prism_bench.catalogue.listing import edge_cases
from prism_bench.compilation.elf import ElfEntry
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.cell import JailCell
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.referee import machine
from prism_bench.extensions.judge.referee.client import RunnerProcess
from prism_bench.extensions.judge.referee.contestant_code import ContestantCode
from prism_bench.extensions.judge.referee.machine import MachineState, quarantine_file
from prism_bench.extensions.judge.referee.messages import Answer, Question
from prism_bench.extensions.judge.referee.planning import case_plan
from prism_bench.extensions.judge.referee.referee import RefereeRules
from prism_bench.extensions.judge.referee.runner import RunnerService
from prism_bench.extensions.judge.referee.session import Contestant, RefereeFindings, RefereeSession
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.kernel import KernelSpec
from prism_bench.monitor.reading import DeviceReading, Process
from prism_bench.workers.frames import Frame
from prism_bench.workers.refusal import Refusal
from prism_bench.workload import Workload
from tests.extensions.judge import fake_device
from tests.extensions.judge.fake_device import FACTS, FakeDevice

HERE = Path(__file__).parent
WRONG = {"wrong": True}
RULES = RefereeRules(blocks=2, samples=4, warmups=1, launch_seconds=2.0)


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


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    spec = discover(HERE / "tasks").kernel("add")
    return Case(spec, spec.workloads["S0"], "S0")


@pytest.fixture(autouse=True)
def any_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prism_bench.extensions.judge.referee.planning.elf_entries", lambda cubin: {})


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


def test_every_sample_of_an_honest_kernel_counts(case: Case) -> None:
    found = judged(case, "honest")
    assert [] == found.objections
    (time,) = found.times
    assert (time.case, time.kind, time.samples) == ("[n=3000]", "submission", RULES.blocks * RULES.samples)
    assert time.low <= time.seconds <= time.high


@pytest.mark.parametrize(
    ("code", "rule", "words"),
    [
        ("skips_work_later", "outputs", "reference"),
        ("caches_by_address", "outputs", "reference"),
        ("writes_past_the_end", "outputs", "wrote after the buffer of c"),
        ("changes_an_input", "outputs", "changed the input a"),
        ("leaves_work_behind", "outputs", "left work behind"),
        ("is_faster_than_an_empty_kernel", "physical limits", "launch overhead"),
        ("turns_the_clock_back", "clock", "by the referee's clock"),
        ("turns_the_clock_on", "clock", "by the referee's"),
    ],
)
def test_what_a_launch_does_wrong_is_seen(case: Case, code: str, rule: str, words: str) -> None:
    found = judged(case, code)
    assert [] == found.times
    assert rule == found.objections[0].rule
    assert words in found.objections[0].words


def test_variables_of_the_module_are_worth_nothing(case: Case) -> None:
    class Keeping(FakeDevice):
        def restore_variables(self) -> None:
            pass

    assert [] == judged(case, "keeps_its_first_result").objections
    assert judged(case, "keeps_its_first_result", Keeping).objections, "it bites where they are not restored"


def test_a_buffer_is_elsewhere_in_another_block(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    places = set[int]()
    monkeypatch.setitem(
        fake_device.KERNELS, "notes", lambda device, a, b, c, n: (places.add(a), fake_device.honest(device, a, b, c, n))
    )
    assert [] == judged(case, "notes").objections
    assert len(places) > 1


def test_a_kernel_that_is_right_and_not_repeatable_is_compared_in_whole(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[Mapping[str, np.ndarray]] = []
    monkeypatch.setattr(
        "prism_bench.extensions.judge.referee.session.compare_outputs",
        lambda backend, case, inputs, outputs, seed: compared.append(outputs) or [],
    )
    found = judged(case, "differs_in_a_bit")
    assert [] == found.objections
    assert "no" in found.evidence["repeatable"]
    launches = RULES.blocks * (RULES.samples + RULES.warmups)
    assert len(compared) >= 2 * launches, "of the samples that count, each was compared"


@pytest.mark.parametrize(("code", "words"), [("hangs", "not ended in 2 s"), ("faults", "illegal memory access")])
def test_a_hang_or_a_fault_ends_the_runner_alone(case: Case, code: str, words: str) -> None:
    session = RefereeSession(
        lambda: RunnerProcess(f"{fake_device.__name__}:FakeDevice"), open_backend, Random(1), RULES,
        state=lambda facts: MachineState(),
    )  # fmt: skip
    session.run(Contestant(code, "submission", [case], ContestantCode(code.encode(), {"add": "add"})))
    session.close()
    assert words in session.findings.objections[0].words
    assert "as before" in session.findings.evidence["machine afterwards"]


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (MachineState(lost="Unknown Error"), "does not answer"),
        (MachineState({"ecc_uncorrected": 3.0}), "ecc uncorrected rose from 0 to 3"),
        (MachineState(unowned=1e10), "held by no process"),
        (MachineState({"max_sm_clock": 1e9}), "max sm clock is 1e+09"),
        (MachineState(canary=1), "known outcome"),
        (MachineState(overhead=1e-3), "an empty kernel takes"),
    ],
)
def test_a_device_that_is_not_as_it_was_is_kept_from_use(case: Case, after: MachineState, words: str) -> None:
    before = MachineState({"ecc_uncorrected": 0.0, "max_sm_clock": 2e9}, unowned=1e9)
    found = judged(case, "honest", states=[before, after])
    assert "state of the machine" == found.objections[0].rule
    assert words in found.objections[0].words
    with pytest.raises(BackendUnavailable, match="in quarantine"):
        judged(case, "honest")
    quarantine_file(fake_device.FACTS.uuid).unlink()
    assert [] == judged(case, "honest").objections


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


def test_two_runners_serve_all_cases_of_a_submission(case: Case) -> None:
    started: list[FakeDevice] = []

    def start() -> NearRunner:
        started.append(FakeDevice())
        return NearRunner(started[-1])

    cases = [case, Case(case.spec, Workload(n=2000), "hidden")]
    session = RefereeSession(start, open_backend, Random(5), RULES, state=lambda facts: MachineState())
    assert cases == session.run(Contestant("sent", "submission", cases, ContestantCode(b"honest", {"add": "add"})))
    assert 3 == len(started), "one to ask for the device, one to time, one to repeat"


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


def test_a_state_without_nvml_has_the_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise BackendUnavailable("no NVML")

    monkeypatch.setattr(machine, "opened", absent)
    assert MachineState(canary=42, overhead=fake_device.OVERHEAD) == machine.machine_state(fake_device.FACTS)


@pytest.mark.parametrize(("readings_until_listed", "held"), [(0, False), (3, False), (10**6, True)])
def test_memory_is_held_by_no_process_only_where_that_lasts(
    monkeypatch: pytest.MonkeyPatch, readings_until_listed: int, held: bool
) -> None:
    class StartingProcess:
        """A device on which one process is listed as small until its context is counted, some readings later."""

        def __init__(self, *_: object) -> None:
            self.reads = 0

        def read(self, now: float) -> DeviceReading:
            self.reads += 1
            listed = 9e8 if self.reads > readings_until_listed else 1e8
            return DeviceReading(now, {"memory_used": 1e9}, processes=(Process(7, "runner", listed),))

    monkeypatch.setattr(machine, "opened", lambda: nullcontext(None))
    monkeypatch.setattr(machine, "devices", lambda nvml: ())
    monkeypatch.setattr(machine, "by_uuid", lambda devices, uuid: object())
    monkeypatch.setattr(machine, "Probe", StartingProcess)
    monkeypatch.setattr(machine, "SETTLING_SECONDS", 0.0)
    before = MachineState({"memory_used": 0.0}, canary=fake_device.FACTS.canary, overhead=fake_device.FACTS.overhead)
    complaints = machine.machine_state(fake_device.FACTS).complaints(before)
    assert bool(complaints) == held, complaints


def test_a_plan_has_no_reference_and_refuses_what_a_runner_cannot_launch(case: Case) -> None:
    plan, _ = case_plan(case, Device(), ContestantCode(b"", {"add": "_Z3add"}))
    assert [("a", "input"), ("b", "input"), ("c", "output")] == [(one.name, one.role) for one in plan.buffers]
    (step,) = plan.steps
    assert ("_Z3add", (12, 1, 1), (256, 1, 1)) == (step.symbol, step.grid, step.block)
    assert 3000 == int.from_bytes(bytes.fromhex(step.parameters[3].value), "little")


def test_a_card_that_passes_other_sizes_than_the_code_takes_is_refused(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = {"add": ElfEntry(((0, 8), (8, 8), (16, 8), (24, 4)))}
    monkeypatch.setattr("prism_bench.extensions.judge.referee.planning.elf_entries", lambda cubin: entries)
    (objection,) = judged(case, "honest").objections
    assert "form" == objection.rule
    assert "8, 8, 8, 8 bytes; the machine code takes 8, 8, 8, 4" in objection.words


def test_a_submission_and_the_kernel_of_its_task_are_timed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_device.FakeDevice, "facts", lambda self: msgspec.structs.replace(FACTS, bandwidth=1e9))
    states = iter([MachineState()] * 2)
    session = RefereeSession(
        lambda: NearRunner(FakeDevice()), open_backend, Random(5), RULES, state=lambda facts: next(states)
    )
    gpu = OnGpu(session, backend=lambda: NullBackend({"add[*": {"peers": {"lib": {"seconds": 2e-3}, "odd": WRONG}}}))
    monkeypatch.setattr(gpu, "_own_code", lambda task, cases: ContestantCode(b"honest", {"add": "add"}))
    monkeypatch.setattr(SubmissionTrial, "_compile", compiled)
    found = discover(HERE / "tasks")
    trial = SubmissionTrial(
        read_submission(HERE / "museum" / "honest.toml"), JudgeTask(found.kernel("add"), found), ("90",), False, gpu=gpu
    )
    monkeypatch.setattr(trial, "_run", lambda spec, cell: None)
    monkeypatch.setattr(trial, "hidden", lambda known: [Case(known[0].spec, Workload(n=2000), "hidden")])
    verdict = trial.verdict()
    assert ("right", []) == (verdict.ruling, list(verdict.objections))
    assert Counter(kernel=2, submission=2, ceiling=2, peer=2) == Counter(one.kind for one in verdict.times)
    assert {"lib", "memory bus, by its clock and width"} <= {one.subject for one in verdict.times}
    assert 2000 * 12 / 1e9 in {one.seconds for one in verdict.times if one.kind == "ceiling"}
    assert ["PrismBenchError" in words for words in verdict.unjudged] == [True, True], (
        "a peer that is wrong has no time"
    )
    assert (("honest[n=2000]",), ["[n=2000]"]) == (verdict.hidden, list(verdict.scored))
    assert 0.5 < verdict.score < 2
    assert "state of the machine" in verdict.defences
    samples = RULES.blocks * RULES.samples
    assert {samples} == {len(one.seeds) for one in verdict.times if one.kind in ("kernel", "submission")}


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


def test_a_launch_that_a_stalled_host_spoiled_is_made_again_on_its_inputs(case: Case) -> None:
    """A kernel that adds to what it finds is wrong where it is launched twice on the same memory."""

    class Stalled(FakeDevice):
        launches = 0

        def timed(self, call: Callable[[], None], *, cold: bool) -> float | None:
            Stalled.launches += 1
            seconds = super().timed(call, cold=cold)
            return None if Stalled.launches % 3 == 1 else seconds

        def leftover(self) -> float:
            return 0.1 if Stalled.launches % 3 == 2 else 0.0

    found = judged(case, "honest", Stalled)
    assert [] == found.objections
    assert 3 * (RULES.blocks * (RULES.samples + RULES.warmups)) * 2 == Stalled.launches
    never = type("Never", (FakeDevice,), {"timed": lambda self, call, cold: None})
    assert "cannot be timed" in judged(case, "honest", never).objections[0].words


def compiled(trial: SubmissionTrial, spec: KernelSpec, cell: JailCell) -> None:
    trial.built["90"] = ContestantCode(b"honest", {"attack": "attack"})
