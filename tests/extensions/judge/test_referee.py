"""The referee: what a launch does wrong is seen from another process, whatever the launch does there."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from prism_bench import absolute
from prism_bench.backends.numpy_reference import open_backend
from prism_bench.compilation.cubin import ElfEntry
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.referee import session as machine
from prism_bench.extensions.judge.referee.client import ContestantCode, RunnerProcess, case_plan
from prism_bench.extensions.judge.referee.session import Contestant, MachineState, RefereeSession, quarantine_file
from prism_bench.monitor.probe import DeviceReading, Process
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Launch, TensorMap
from prism_bench.spec.workload import Workload
from tests.extensions.judge import fake_device, near_runner
from tests.extensions.judge.fake_device import FakeDevice
from tests.extensions.judge.near_runner import LARGE, RULES, judged

case, any_parameters = near_runner.case, near_runner.any_parameters  # fixtures


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
    assert words in found.objections[0].text


@pytest.mark.parametrize(("stalled", "objects"), [(4, False), (5, True)])
def test_clocks_that_disagree_are_compared_again(case: Case, stalled: int, objects: bool) -> None:
    class Stalling(FakeDevice):
        """Its host stalls in the first series of launches, each of which another load precedes."""

        loads, series = 0, set[int]()

        def load(self, cubins: Sequence[bytes], symbols: Sequence[tuple[int, str]]) -> dict[str, int]:
            Stalling.loads += 1
            return super().load(cubins, symbols)

        def synchronize(self) -> None:
            if self.outside["calls"] - self.outside.get("synchronized", 0) > 2:
                Stalling.series.add(Stalling.loads)
                time.sleep(1.0 if len(Stalling.series) <= stalled else 0.0)
            self.outside["synchronized"] = self.outside["calls"]

    found = judged(case, "honest", Stalling)
    assert min(stalled + 1, 5) == len(Stalling.series)
    assert objects == any("each of 5 times" in one.text for one in found.objections)


def test_a_submission_that_launches_nothing_is_wrong_where_there_is_an_output(case: Case) -> None:
    idle = replace(case.spec, launch=lambda n: Launch(0, 256))
    (objection,) = judged(Case(idle, case.workload, "S0"), "honest").objections
    assert ("outputs", True) == (objection.rule, "c is never written" in objection.text)
    assert [] == judged(Case(idle, Workload(n=0), "edge"), "honest").objections, "no element, nothing to write"


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
    monkeypatch.setattr(near_runner, "RULES", LARGE)
    found = judged(case, "differs_in_a_bit")
    assert [] == found.objections
    assert "no" in found.evidence["repeatable"]
    launches = RULES.blocks * (RULES.samples + RULES.warmups)
    assert len(compared) >= 2 * launches, "of the samples that count, each was compared"


def test_a_kernel_that_is_not_repeatable_breaks_the_promise_of_its_task(case: Case) -> None:
    promised = replace(case, spec=replace(case.spec, bitwise=True, tolerance=absolute(1e-3)))
    assert [] == judged(promised, "honest").objections
    (objection,) = judged(promised, "differs_in_a_bit").objections
    assert "outputs differ in bits from launch to launch; bitwise=True is promised" in objection.text


@pytest.mark.parametrize(("code", "words"), [("hangs", "not ended in 2 s"), ("faults", "illegal memory access")])
def test_a_hang_or_a_fault_ends_the_runner_alone(case: Case, code: str, words: str) -> None:
    session = RefereeSession(
        lambda: RunnerProcess(f"{fake_device.__name__}:FakeDevice"), open_backend, Random(1), RULES,
        state=lambda facts: MachineState(),
    )  # fmt: skip
    session.run(Contestant(code, "submission", [case], ContestantCode(code.encode(), {"add": "add"})))
    session.close()
    assert words in session.findings.objections[0].text
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
    assert words in found.objections[0].text
    with pytest.raises(BackendUnavailable, match="in quarantine"):
        judged(case, "honest")
    quarantine_file(fake_device.FACTS.uuid).unlink()
    assert [] == judged(case, "honest").objections


def test_more_operations_than_a_device_can_do_are_refused(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(case.spec, flops=lambda n: 1e9)
    working = Case(spec, case.workload, "S0")
    for operations, rules in ((1e13, []), (1e10, ["physical limits"]), (0.0, [])):
        facts = msgspec.structs.replace(fake_device.FACTS, operations=operations)
        monkeypatch.setattr(FakeDevice, "facts", lambda self, facts=facts: facts)
        found = judged(working, "honest")
        assert rules == [one.rule for one in found.objections]
        assert not rules or "no program does more than 10.0 GFLOP/s" in found.objections[0].text


def test_a_state_without_nvml_has_the_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise BackendUnavailable("no NVML")

    monkeypatch.setattr(machine, "opened", absent)
    assert MachineState(canary=42, overhead=fake_device.OVERHEAD) == machine.machine_state(fake_device.FACTS)


@pytest.mark.parametrize("used", [1e10, 7.5e8])  # much, and what a first context takes
@pytest.mark.parametrize(("readings_until_listed", "held"), [(0, False), (3, False), (10**6, True)])
def test_memory_is_held_by_no_process_only_where_that_lasts(
    monkeypatch: pytest.MonkeyPatch, readings_until_listed: int, held: bool, used: float
) -> None:
    class StartingProcess:
        """A device on which one process is listed as small until its context is counted, some readings later."""

        def __init__(self, *_: object) -> None:
            self.reads = 0

        def read(self, now: float) -> DeviceReading:
            self.reads += 1
            listed = used - 1e8 if self.reads > readings_until_listed else 1e8
            return DeviceReading(now, {"memory_used": used}, processes=(Process(7, "runner", listed),))

    monkeypatch.setattr(machine, "opened", lambda: nullcontext(None))
    monkeypatch.setattr(machine, "devices", lambda nvml: ())
    monkeypatch.setattr(machine, "by_uuid", lambda devices, uuid: object())
    monkeypatch.setattr(machine, "Probe", StartingProcess)
    monkeypatch.setattr(machine, "SETTLING_SECONDS", 0.0)
    before = MachineState({"memory_used": 0.0}, canary=fake_device.FACTS.canary, overhead=fake_device.FACTS.overhead)
    complaints = machine.machine_state(fake_device.FACTS).complaints(before)
    assert bool(complaints) == held, complaints


def test_memory_that_the_driver_reserves_is_no_memory_that_was_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in use without any process, too: before the judge has a context of its own, and afterwards with that."""
    monkeypatch.setattr(machine, "opened", lambda: nullcontext(None))
    monkeypatch.setattr(machine, "devices", lambda nvml: [])
    monkeypatch.setattr(machine, "by_uuid", lambda found, uuid: "a device")
    monkeypatch.setattr(machine, "SETTLING_SECONDS", 0.0)

    def state(used: float, *held: float) -> MachineState:
        found = DeviceReading(0.0, {"memory_used": used}, {}, tuple(Process(9, "judge", size) for size in held))
        monkeypatch.setattr(machine, "Probe", lambda nvml, device: SimpleNamespace(read=lambda at: found))
        return machine.machine_state(fake_device.FACTS)

    before = state(654e6)
    assert [] == state(654e6 + 700e6, 700e6).complaints(before)
    assert "held by no process" in state(2e9, 700e6).complaints(before)[0]
    assert [] == state(2e9).complaints(before), "in a container that shows no process"


def test_a_plan_has_no_reference_and_refuses_what_a_runner_cannot_launch(case: Case) -> None:
    plan, _ = case_plan(case, Device(), ContestantCode(b"", {"add": "_Z3add"}))
    assert [("a", "input"), ("b", "input"), ("c", "output")] == [(one.name, one.role) for one in plan.buffers]
    (step,) = plan.steps
    assert ("_Z3add", (12, 1, 1), (256, 1, 1)) == (step.symbol, step.grid, step.block)
    assert 3000 == int.from_bytes(bytes.fromhex(step.parameters[3].value), "little")


def test_a_buffer_is_passed_as_a_tensor_map(case: Case) -> None:
    def with_map(wanted: TensorMap, n: int) -> Case:
        spec = replace(case.spec, launch=lambda n: Launch(-(-n // 256), 256, maps=(wanted,)))
        return Case(spec, Workload(n=n), "S0")

    described = with_map(TensorMap("a", 3, tf32=True), 3000)
    plan, _ = case_plan(described, Device(), ContestantCode(b"", {"add": "add"}))
    assert [128, 8, 8, 8] == [one.size for one in plan.steps[0].parameters]
    assert [] == judged(described, "takes_a_map").objections
    (objection,) = judged(with_map(TensorMap("a"), 3001), "takes_a_map").objections
    assert ("form", True) == (objection.rule, "rows of whole 16 bytes" in objection.text)


def test_a_card_that_passes_other_sizes_than_the_code_takes_is_refused(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = {"add": ElfEntry(((0, 8), (8, 8), (16, 8), (24, 4)))}
    monkeypatch.setattr("prism_bench.compilation.cubin.elf_entries", lambda cubin: entries)
    (objection,) = judged(case, "honest").objections
    assert "form" == objection.rule
    assert "8, 8, 8, 8 bytes; the machine code takes 8, 8, 8, 4" in objection.text


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
    assert 3 * (RULES.blocks * (RULES.samples + RULES.warmups) + 1) == Stalled.launches
    never = type("Never", (FakeDevice,), {"timed": lambda self, call, cold: None})
    assert "cannot be timed" in judged(case, "honest", never).objections[0].text
