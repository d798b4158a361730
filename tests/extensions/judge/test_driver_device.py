"""Device under a sanitizer: what it asks of the driver, and what it makes of the driver's errors."""

import ctypes
from typing import Any

import numpy as np
import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.referee import driver_device
from prism_bench.extensions.judge.referee.driver_device import DriverDevice, DriverError
from prism_bench.extensions.judge.referee.messages import (
    BufferPlan,
    CasePlan,
    FactsQuestion,
    InputPlan,
    InputsQuestion,
    PlannedParameter,
    RunnerLaunchQuestion,
    RunnerLoadQuestion,
    StepPlan,
)
from prism_bench.extensions.judge.referee.runner import RunnerService
from prism_bench.io.channels import Frame
from prism_bench.io.workers import Refusal


class FakeDriver:
    """Driver whose memory is that of this process; a launch adds the second number to each byte of the first buffer."""

    def __init__(self, **statuses: int) -> None:
        self.statuses, self.asked, self.memory = statuses, list[str](), dict[int, Any]()

    def __getattr__(self, name: str) -> Any:
        def function(*arguments: Any) -> int:
            self.asked.append(name)
            status = self.statuses.get(name, 0)
            return status or getattr(self, f"_{name.lower()}", lambda *_: 0)(*arguments)

        if name.startswith("_"):
            raise AttributeError(name)
        return function

    def _cumemalloc_v2(self, address: Any, size: ctypes.c_size_t) -> int:
        memory = ctypes.create_string_buffer(size.value)
        address._obj.value = ctypes.addressof(memory)
        self.memory[ctypes.addressof(memory)] = memory
        return 0

    def _cumemfree_v2(self, address: ctypes.c_uint64) -> int:
        del self.memory[address.value]
        return 0

    def _cumemsetd8_v2(self, address: ctypes.c_uint64, value: ctypes.c_ubyte, size: ctypes.c_size_t) -> int:
        ctypes.memset(address.value, value.value, size.value)
        return 0

    def _cumemcpyhtod_v2(self, address: ctypes.c_uint64, source: ctypes.c_void_p, size: ctypes.c_size_t) -> int:
        ctypes.memmove(address.value, source.value or 0, size.value)
        return 0

    def _culaunchkernel(self, function: Any, *rest: Any) -> int:
        assert (2, 1, 1, 3, 1, 1, 64) == tuple(extent.value for extent in rest[:7])
        _, parameters, extra = rest[7:]
        assert extra is None
        address = ctypes.c_uint64.from_address(parameters[0]).value
        added = ctypes.c_int32.from_address(parameters[1]).value
        memory = self.memory[address]
        memory.raw = bytes(byte + added for byte in memory.raw)
        return 0


PLAN = CasePlan(
    "sent[n=3]",
    (BufferPlan("x", "uint8", (3,), "input"), BufferPlan("s", "uint8", (2,), "scratch", first_byte=7)),
    (
        StepPlan("k", (2, 1, 1), (3, 1, 1), 64, parameters=(
            PlannedParameter(buffer="x"), PlannedParameter(dtype="<i4", value=np.int32(5).tobytes().hex()),
        )),
    ),
)  # fmt: skip


def reply(service: RunnerService, message: Any, *arrays: np.ndarray) -> Any:
    return service.reply(Frame(message, arrays))[0]


def test_a_watched_launch_has_its_inputs_scratch_and_parameters_by_the_driver_alone() -> None:
    driver = FakeDriver()
    service = RunnerService(DriverDevice(driver))
    reply(service, RunnerLoadQuestion(PLAN, watched=True), np.frombuffer(b"a cubin", np.uint8))
    reply(service, InputsQuestion((InputPlan("x", (0,)),)), np.array([1, 2, 3], np.uint8))
    answer = reply(service, RunnerLaunchQuestion(0))
    assert (0.0, {}) == (answer.seconds, answer.digests)
    assert [bytes([6, 7, 8]), bytes([7, 7])] == [memory.raw for memory in driver.memory.values()], "of exact size"
    assert driver.asked.index("cuFuncSetAttribute") < driver.asked.index("cuLaunchKernel")
    assert "cuCtxSynchronize" == driver.asked[-1]
    reply(service, RunnerLoadQuestion(CasePlan("", (), ()), watched=True))
    assert ({}, 1) == (driver.memory, driver.asked.count("cuModuleUnload"))


def test_a_device_that_only_launches_has_no_facts_and_no_measured_launches() -> None:
    service = RunnerService(DriverDevice(FakeDriver()))
    for question in (FactsQuestion(), RunnerLoadQuestion(PLAN)):
        answer = reply(service, question, np.frombuffer(b"a cubin", np.uint8))
        assert isinstance(answer, Refusal)
        assert "measures nothing" in answer.text


def test_a_fault_of_launched_code_ends_the_runner_and_missing_memory_does_not() -> None:
    full = RunnerService(DriverDevice(FakeDriver(cuMemAlloc_v2=2)))
    answer = reply(full, RunnerLoadQuestion(PLAN, watched=True), np.frombuffer(b"a cubin", np.uint8))
    assert isinstance(answer, Refusal)
    assert ("BackendUnavailable", True) == (answer.kind, "no memory on the device" in answer.text)
    device = DriverDevice(driver := FakeDriver())
    driver.statuses["cuCtxSynchronize"] = 719
    with pytest.raises(DriverError, match="cuCtxSynchronize returned CUDA error 719"):
        device.synchronize()


def test_a_machine_without_a_gpu_is_no_fault_of_a_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_device.ctypes, "CDLL", lambda name: FakeDriver(cuInit=100))
    with pytest.raises(BackendUnavailable, match="cuInit returned CUDA error 100"):
        driver_device.open_device()
