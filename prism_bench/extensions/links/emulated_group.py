"""The fused kernel's own source on the CPU: each part of a launch on one device after the other."""

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from prism_bench.emulator import HostBuffer, compile_source
from prism_bench.errors import BackendUnavailable, VerificationFailed
from prism_bench.extensions.links.fused import EVERYTHING, MEET, PARTS, SOURCE, FusedLaunch, fused_launch
from prism_bench.extensions.links.group import DeviceGroup, GroupCall
from prism_bench.extensions.links.operations import GroupCase
from prism_bench.io.files import shared_with
from prism_bench.record.measurement import Sample
from prism_bench.spec.case import Device

SMALL = Device(sm_count=2)  # so that blocks have several tiles


class EmulatedCall(GroupCall):
    """The fused kernel, or the meeting, on devices whose memory is this process's own."""

    def __init__(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]], launch: FusedLaunch) -> None:
        self._case, self._inputs, self._launch, self._epoch = case, inputs, launch, 0
        entries = (launch.entry, MEET) if launch.entry != MEET else (MEET,)
        self._module = compile_source(SOURCE, shared_with(SOURCE), entries)
        devices = range(case.devices)
        self._parts = [np.zeros(launch.parts_bytes, np.uint8) for _ in devices]
        self._c = [np.zeros(case.operation.output(case.axes), case.operation.dtype) for _ in devices]
        self._sent = [np.zeros(max(1, launch.own_tiles), np.uint64) for _ in devices]
        self._finished = [np.zeros(1, np.uint64) for _ in devices]
        lists = (self._parts, self._c, self._sent, self._finished)
        self._addresses = np.array([one.ctypes.data for arrays in lists for one in arrays], np.uint64)

    def __call__(self) -> None:
        self._epoch += 1
        for steps in (EVERYTHING,) if self._case.devices == 1 else PARTS:
            for device in range(self._case.devices):
                self._run(device, steps)

    def _run(self, device: int, steps: int) -> None:
        launch, axes = self._launch, self._case.axes
        numbers = [axes[one] for one in ("m", "n", "k") if one in axes]
        words = map(np.int32, (device, self._case.devices, *numbers, self._epoch, steps))
        arrays = [HostBuffer(array) for array in self._inputs[device].values()]
        arguments = [*arrays, HostBuffer(self._addresses), *words]
        report = self._module.launch(
            launch.entry, launch.grid, launch.threads, arguments, shared_bytes=launch.shared, cooperative=True
        )
        if report.findings:
            raise VerificationFailed(f"{self._case.name} on device {device}: {report.findings[0]}")

    def poison(self) -> None:
        for one in self._c:
            one[...] = np.nan if one.dtype.kind == "f" else 91

    def outputs(self) -> list[np.ndarray]:
        if self._launch.entry == MEET:
            return [one - np.uint64((self._epoch - 1) * self._case.devices) for one in self._finished]
        return self._c

    def sample(self) -> Sample:
        began = perf_counter()
        self()
        return Sample(perf_counter() - began)


class EmulatedGroup(DeviceGroup):
    """As many emulated devices as a case names; it has no links, so nothing but this project's own kernels runs."""

    def prepare(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> EmulatedCall:
        if case.form == "fused":
            return EmulatedCall(case, inputs, fused_launch(case.axes, SMALL, "Tiny"))
        if case.form == "kernel":
            return EmulatedCall(case, inputs, meeting())
        raise BackendUnavailable(f"{case.name}: the emulator has no {case.form} and no links")


def meeting() -> FusedLaunch:
    """Return the launch of `meet`, which has no parts."""
    return FusedLaunch(MEET, 1, 32, 0, 8, 1)
