"""Large outputs are compared where another process's memory is opened, and through the host where that shows others."""

import ctypes
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from prism_bench.extensions.judge.referee import session as session_module
from prism_bench.extensions.judge.referee.cuda_device import copied_outputs
from prism_bench.extensions.judge.referee.messages import BufferPlan, CasePlan
from prism_bench.spec.case import Case
from tests.extensions.judge import near_runner
from tests.extensions.judge.fake_device import FakeDevice
from tests.extensions.judge.near_runner import RULES, judged

case, any_parameters = near_runner.case, near_runner.any_parameters  # fixtures


class Shown(np.ndarray):
    """An array with an address where CuPy's has it."""

    @property
    def data(self) -> SimpleNamespace:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)


class Driver(ModuleType):
    """NumPy with the driver's calls between processes; `memory` is what handles open."""

    class CUDARuntimeError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("driver")
        vars(self).update(vars(np))
        self.memory: dict[bytes, np.ndarray] = {}
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.cuda = SimpleNamespace(runtime=SimpleNamespace(
            CUDARuntimeError=self.CUDARuntimeError, memcpyDeviceToDevice=3, ipcOpenMemHandle=self.open,
            ipcCloseMemHandle=self.closed.append, deviceSynchronize=lambda: None,
            memcpy=lambda to, source, size, kind: ctypes.memmove(to, source, size),
        ))  # fmt: skip
        vars(self)["empty"] = lambda shape, dtype: np.empty(shape, dtype).view(Shown)

    def open(self, handle: bytes) -> int:
        if handle not in self.memory:
            raise self.CUDARuntimeError("invalid resource handle")
        self.opened.append(self.memory[handle].ctypes.data)
        return self.opened[-1]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver()
    monkeypatch.setattr(session_module, "compared_in", lambda backend, case: found)
    return found


def sharing(driver: Driver, change: int = 0) -> type[FakeDevice]:
    class SharingDevice(FakeDevice):
        """Shows its outputs to the driver, by `change` in the first byte other than they are."""

        def share(self, name: str, address: int, size: int) -> bytes:
            copy = self.view(address, size).copy()
            copy[0] ^= change
            driver.memory[handle := str(address).encode()] = copy
            return handle

    return SharingDevice


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was brought through the host."""
    found: list[str] = []
    outputs = near_runner.RunnerService.reply

    def reply(self: near_runner.RunnerService, frame: object) -> object:
        found.append(type(frame.message).__name__)  # type: ignore[attr-defined]
        return outputs(self, frame)  # type: ignore[arg-type]

    monkeypatch.setattr(near_runner.RunnerService, "reply", reply)
    return found


def test_outputs_are_compared_in_the_memory_that_is_shown(case: Case, driver: Driver, fetched: list[str]) -> None:
    assert [] == judged(case, "honest", sharing(driver)).objections
    launches = RULES.blocks * (RULES.samples + RULES.warmups)
    assert launches == len(driver.opened) == fetched.count("ShareQuestion")
    assert driver.opened == driver.closed
    assert "FetchQuestion" not in fetched


def test_a_wrong_kernel_is_seen_there(case: Case, driver: Driver, fetched: list[str]) -> None:
    (objection,) = judged(case, "skips_work_later", sharing(driver)).objections
    assert "reference" in objection.text
    assert "FetchQuestion" not in fetched


@pytest.mark.parametrize("shows", ["other bytes", "nothing", "what nobody opens"])
def test_what_is_not_shown_as_it_was_goes_through_the_host(
    case: Case, driver: Driver, fetched: list[str], monkeypatch: pytest.MonkeyPatch, shows: str
) -> None:
    device = sharing(driver, change=1) if shows == "other bytes" else FakeDevice
    if shows == "what nobody opens":
        monkeypatch.setattr(FakeDevice, "share", lambda self, name, address, size: b"unknown")
    assert [] == judged(case, "honest", device).objections
    assert fetched.count("FetchQuestion") == fetched.count("ShareQuestion") > 0


def test_an_output_without_elements_needs_no_handle() -> None:
    driver, content = Driver(), np.arange(6, dtype=np.float32)
    driver.memory[b"one"] = content
    plan = CasePlan("k", (_buffer("x", 4, "input"), _buffer("y", 6), _buffer("z", 0)), ())
    found: Mapping[str, np.ndarray] = copied_outputs(driver, plan, {"y": b"one"})
    assert ["y", "z"] == list(found)
    assert np.array_equal(content, found["y"])
    assert {} == copied_outputs(driver, plan, {})


def _buffer(name: str, elements: int, role: str = "output") -> BufferPlan:
    return BufferPlan(name, "float32", (elements,), role)  # type: ignore[arg-type]
