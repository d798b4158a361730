"""Session of one worker: verifies operations on several GPUs in the first process, times them in the others."""

from typing import Any

import numpy as np

from prism_bench.backends import Backend
from prism_bench.backends.null import NullBackend
from prism_bench.errors import BackendUnavailable, MeasurementInvalid, PrismBenchError
from prism_bench.extensions.links.emulated_group import EmulatedGroup
from prism_bench.extensions.links.group import DeviceGroup, GroupCall
from prism_bench.extensions.links.host_group import HostGroup
from prism_bench.extensions.links.operations import GroupCase, case_of, with_terms
from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, Status
from prism_bench.run.verification import Entry
from prism_bench.spec.inputs import AnyArray
from prism_bench.spec.tolerance import compare

FAMILY = "links"
CRITERION = Criterion(precision=0.01, min_samples=12, max_samples=60, seconds=1.0)
VERIFIED = 3  # launches: a counter that was not advanced shows in the second
WARM = 3  # launches before the first sample: NCCL connects in the first


class LinkSession:
    """A session on a backend that stays open; the group of so many devices is made once."""

    def __init__(self, backend: Backend, *, first: bool) -> None:
        self._backend, self._first = backend, first
        self._groups: dict[int, DeviceGroup] = {}
        self._gate = ClockGate()

    def task(self, task: str) -> CaseResult:
        """Carry out one task; a group that cannot be had is a skipped case with the reason."""
        case = case_of(task)
        try:
            inputs = [case.inputs(device) for device in range(case.devices)]
            group = self._group(case.devices)
            with group.prepare(case, inputs) as call:
                found = self._verified(case, call, inputs) if self._first else self._timed(case, call, inputs)
                return self._result(case, **found, code={**call.evidence(), **group.facts()})
        except BackendUnavailable as error:
            return self._result(case, "skipped", str(error))
        except MeasurementInvalid as error:
            return self._result(case, "ok", measurements=(_unmeasured(str(error)),))
        except (PrismBenchError, MemoryError) as error:
            return self._result(case, "failed", f"{type(error).__name__}: {error}")

    def _group(self, devices: int) -> DeviceGroup:
        if devices not in self._groups:
            self._groups[devices] = _opened(self._backend, devices)
        return self._groups[devices]

    def _verified(self, case: GroupCase, call: GroupCall, inputs: list[dict[str, np.ndarray]]) -> dict[str, Any]:
        """Verify several launches, each on poisoned outputs, on every device."""
        checks = _Checks(self._backend, case, inputs)
        for _ in range(VERIFIED):
            call.poison()
            call()
            checks.look(call)
        return checks.outcome()

    def _timed(self, case: GroupCase, call: GroupCall, inputs: list[dict[str, np.ndarray]]) -> dict[str, Any]:
        """Time it, then verify what one more timed launch left on poisoned outputs."""
        for _ in range(WARM):
            call()
        series = sample(call.sample, CRITERION, self._gate)
        call.poison()
        call.sample()
        checks = _Checks(self._backend, case, inputs)
        checks.look(call, metric="cold_time")
        clocks = tuple(one.clock for one in series.samples if one.clock)
        seconds = tuple(one.seconds for one in series.samples)
        measured = Measurement(
            "cold_time", "kernel", (seconds,), clocks=(clocks,) if clocks else (), throttled=series.throttled,
            valid=not series.gave_up, reason="the clock stayed throttled" if series.gave_up else None,
        )  # fmt: skip
        return {**checks.outcome(), "measurements": (measured,)}

    def _result(self, case: GroupCase, status: Status, reason: str | None = None, **facts: Any) -> CaseResult:
        operation, workload = case.operation, dict(case.axes)
        replaced = "fused" in operation.forms and case.form != "fused"
        return CaseResult(
            name=case.name, kernel=operation.name, variant=case.form, family=FAMILY, label=case.label,
            workload=workload, bytes=round(operation.sent(case.axes)), flops=operation.flops(case.axes) or None,
            status=status, reason=reason, arithmetic="tensor" if operation.flops(case.axes) else "fp32",
            before=f"{operation.name}:fused" if replaced else None, **facts,
        )  # fmt: skip


def _unmeasured(reason: str) -> Measurement:
    return Measurement("cold_time", "kernel", (), valid=False, reason=reason)


def _opened(backend: Backend, devices: int) -> DeviceGroup:
    """Return the group of the backend; BackendUnavailable where it has none."""
    if isinstance(backend, NullBackend):
        return HostGroup(backend)
    if backend.name == "emulator":
        return EmulatedGroup()
    if backend.name == "cuda":
        from prism_bench.extensions.links.cuda_group import CudaGroup

        return CudaGroup(backend.xp, devices)
    raise BackendUnavailable(f"the backend {backend.name} has no links between devices")


class _Checks:
    """Verification of a case: an entry for each look at a device's output."""

    def __init__(self, backend: Backend, case: GroupCase, inputs: list[dict[str, np.ndarray]]) -> None:
        self._case, self._xp = case, backend.xp
        arrays = [{name: self._xp.asarray(one) for name, one in own.items()} for own in inputs]
        operation = case.operation
        self._expected: list[AnyArray] = operation.expected(case.axes, arrays, self._xp)
        self._tolerance = with_terms(operation, case.devices)
        self._magnitude = operation.magnitude(arrays, self._xp) if operation.magnitude else None
        self._entries: list[Entry] = []

    def look(self, call: GroupCall, **where: str) -> None:
        """Compare the output of every device with its reference."""
        for device, (output, expected) in enumerate(zip(call.outputs(), self._expected, strict=True)):
            self._entries.append({**self._entry(output, expected), "output": f"device {device}", **where})

    def _entry(self, output: np.ndarray, expected: AnyArray) -> Entry:
        terms = self._tolerance.terms
        found = compare(
            self._xp.asarray(output), expected, self._tolerance, self._xp, terms=terms, magnitude=self._magnitude
        )
        facts = {name: getattr(found, name) for name in _KEPT}
        return {
            "seed": 0, "passed": found.passed, "of": int(expected.size), "where": "float64",
            "tolerance": self._tolerance.name, "place": list(found.place), **facts,
        }  # fmt: skip

    def outcome(self) -> dict[str, Any]:
        """Return status, reason and entries as a result keeps them."""
        wrong = next((one for one in self._entries if not one["passed"]), None)
        entries = tuple(self._entries)
        return {"status": "wrong" if wrong else "ok", "reason": self._complaint(wrong), "verification": entries}

    def _complaint(self, wrong: Entry | None) -> str | None:
        if wrong is None:
            return None
        return (
            f"{self._case.name}, {wrong['output']}: {wrong['differing']} of {wrong['compared']} elements differ, the "
            f"worst is {wrong['actual']:.9g}, reference {wrong['expected']:.9g}"
        )


_KEPT = ("compared", "differing", "max_error", "max_relative", "norm_error", "actual", "expected")
