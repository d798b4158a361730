"""Session of one worker on several GPUs of one host, its results and their views."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.backends import Backend
from prism_bench.backends.null import NullBackend
from prism_bench.errors import BackendUnavailable, MeasurementInvalid, PrismBenchError
from prism_bench.extensions.links.groups import DeviceGroup, EmulatedGroup, GroupCall, HostGroup
from prism_bench.extensions.links.operations import OPERATIONS, GroupCase, case_of, with_terms
from prism_bench.measure import ClockGate, Criterion, sample
from prism_bench.measure.plausibility import valid_median
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord, Status
from prism_bench.run.verification import Entry
from prism_bench.spec.inputs import AnyArray
from prism_bench.spec.tolerance import compare
from prism_bench.units import rate_text, ratio_text, share_text, time_text

# Session of one worker: verifies operations on several GPUs in the first process, times them in the others.

FAMILY = "links"
_CRITERION = Criterion(precision=0.01, min_samples=12, max_samples=60, seconds=1.0)
_VERIFIED = 3  # launches: a counter that was not advanced shows in the second
_WARM = 3  # launches before the first sample: NCCL connects in the first


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
        for _ in range(_VERIFIED):
            call.poison()
            call()
            checks.look(call)
        return checks.outcome()

    def _timed(self, case: GroupCase, call: GroupCall, inputs: list[dict[str, np.ndarray]]) -> dict[str, Any]:
        """Time it, then verify what one more timed launch left on poisoned outputs."""
        for _ in range(_WARM):
            call()
        series = sample(call.sample, _CRITERION, self._gate)
        call.poison()
        call.sample()
        checks = _Checks(self._backend, case, inputs)
        checks.look(call, metric="cold_time")
        clocks = tuple(one.clock for one in series.samples if one.clock)
        seconds = tuple(one.seconds for one in series.samples)
        measured = Measurement(
            "cold_time",
            "kernel",
            (seconds,),
            clocks=(clocks,) if clocks else (),
            throttled=series.throttled,
            valid=not series.gave_up,
            reason="the clock stayed throttled" if series.gave_up else None,
        )
        return {**checks.outcome(), "measurements": (measured,)}

    def _result(self, case: GroupCase, status: Status, reason: str | None = None, **facts: Any) -> CaseResult:
        operation, workload = case.operation, dict(case.axes)
        replaced = "fused" in operation.forms and case.form != "fused"
        return CaseResult(
            name=case.name,
            kernel=operation.name,
            variant=case.form,
            family=FAMILY,
            label=case.label,
            workload=workload,
            bytes=round(operation.sent(case.axes)),
            flops=operation.flops(case.axes) or None,
            status=status,
            reason=reason,
            arithmetic="tensor" if operation.flops(case.axes) else "fp32",
            before=f"{operation.name}:fused" if replaced else None,
            **facts,
        )


def _unmeasured(reason: str) -> Measurement:
    return Measurement("cold_time", "kernel", (), valid=False, reason=reason)


def _opened(backend: Backend, devices: int) -> DeviceGroup:
    """Return the group of the backend; BackendUnavailable if it has none."""
    if isinstance(backend, NullBackend):
        return HostGroup(backend)
    if backend.name == "emulator":
        return EmulatedGroup()
    if backend.name == "cuda":
        from prism_bench.extensions.links.groups import CudaGroup

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
            "seed": 0,
            "passed": found.passed,
            "of": int(expected.size),
            "where": "float64",
            "tolerance": self._tolerance.name,
            "place": list(found.place),
            **facts,
        }

    def outcome(self) -> dict[str, Any]:
        """Return status, reason and entries as a result keeps them."""
        wrong = next((entry for entry in self._entries if not entry["passed"]), None)
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


# Results of operations on several GPUs: bandwidth of each GPU, and the fused kernel against what it replaces.

_STATUS_BAD = ("wrong", "crashed", "timed out", "failed")


@dataclass(frozen=True)
class LinkRow:
    """One operation; `seconds` of the slowest GPU, None if nothing was measured.

    `sent` is what each GPU has to send at least, and `bandwidth` that over the time. `ceiling` is the best bandwidth
    of the operations that only move data, in the same run on as many GPUs. `against` is how many times longer the form
    that this one replaces takes.
    """

    name: str
    operation: str
    form: str
    label: str
    devices: int
    status: str
    reason: str | None
    seconds: float | None
    sent: int
    flops: int | None
    ceiling: float | None = None
    against: float | None = None

    @property
    def bandwidth(self) -> float | None:
        """Bytes that each GPU sends in a second."""
        return self.sent / self.seconds if self.seconds and self.sent else None

    @property
    def flop_rate(self) -> float | None:
        """Operations of all GPUs in a second."""
        return self.flops / self.seconds if self.seconds and self.flops else None

    @property
    def share(self) -> float | None:
        """The bandwidth over the ceiling of the links."""
        return self.bandwidth / self.ceiling if self.bandwidth and self.ceiling else None


def rows(record: RunRecord) -> tuple[LinkRow, ...]:
    """Return a row for every operation of the record, in its order; a record of kernels has none."""
    cases = [case for case in record.cases if case.family == FAMILY]
    ceilings = _ceilings(cases)
    seconds = {case.name: valid_median(case, "cold_time") for case in cases}
    return tuple(_row(case, cases, seconds, ceilings.get(_devices(case))) for case in cases)


def _row(
    case: CaseResult, cases: Sequence[CaseResult], seconds: dict[str, float | None], ceiling: float | None
) -> LinkRow:
    own, form = seconds[case.name], case.variant or ""
    replaced = next((one for one in cases if one.before == f"{case.kernel}:{form}" and _alike(one, case)), None)
    before = seconds[replaced.name] if replaced else None
    return LinkRow(
        name=case.name,
        operation=case.kernel,
        form=form,
        label=case.label,
        devices=_devices(case),
        status=case.status,
        reason=case.reason or _why_unmeasured(case),
        seconds=own,
        sent=case.bytes,
        flops=case.flops,
        ceiling=ceiling,
        against=before / own if before and own else None,
    )


def _alike(one: CaseResult, other: CaseResult) -> bool:
    return one.workload == other.workload


def _why_unmeasured(case: CaseResult) -> str | None:
    found = case.measurement("cold_time")
    return found.reason if found and not found.valid else None


def _devices(case: CaseResult) -> int:
    return int(case.workload.get("devices", 0))


def _ceilings(cases: Sequence[CaseResult]) -> dict[int, float]:
    """Return by number of GPUs the best bandwidth of operations that only move data."""
    found: dict[int, float] = {}
    for case in cases:
        seconds, operation = valid_median(case, "cold_time"), OPERATIONS.get(case.kernel)
        if seconds and case.bytes and operation and operation.is_link_ceiling:
            found[_devices(case)] = max(found.get(_devices(case), 0.0), case.bytes / seconds)
    return found


def exit_code(found: Sequence[LinkRow]) -> int:
    """Return 1 where an operation is wrong or broke, 2 where none could run, else 0."""
    if any(row.status in _STATUS_BAD for row in found):
        return 1
    return 0 if any(row.status == "ok" for row in found) else 2


# Operations on several GPUs as a table and as JSON.

_STYLES = {"ok": "green", "skipped": "yellow"}
_NOTE = (
    "time: all GPUs start together, caches cleared; that of the slowest between its events. bandwidth: the bytes that "
    "each GPU has to send at least over the time; share: of the best operation that only moves data"
)


def links_view(found: Sequence[LinkRow]) -> RenderableType:
    """Return what `links` prints, for a Rich console."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for place, column in enumerate(
        ("operation", "label", "GPUs", "right", "time", "bandwidth", "share", "arithmetic", "speedup")
    ):
        table.add_column(column, justify="right" if place > 1 else "left", overflow="fold")
    for row in found:
        table.add_row(*_cells(row))
    reasons = dict.fromkeys(f"{row.operation}:{row.form}: {row.reason}" for row in found if row.reason)
    return Group(table, *(Text(f"  {reason}", style="yellow") for reason in reasons), Text(f"  {_NOTE}", style="dim"))


def _cells(row: LinkRow) -> tuple[str | Text, ...]:
    right = Text("yes" if row.status == "ok" else row.status, style=_STYLES.get(row.status, "bold red"))
    speed = rate_text(row.bandwidth, "B/s") if row.bandwidth else "-"
    return (
        f"{row.operation}:{row.form}",
        row.label,
        str(row.devices),
        right,
        time_text(row.seconds),
        speed,
        share_text(row.share),
        rate_text(row.flop_rate, "FLOP/s") if row.flop_rate else "-",
        ratio_text(row.against),
    )


def links_json(found: Sequence[LinkRow]) -> dict[str, Any]:
    """Return the same as plain JSON values; what was not measured is null."""
    return {
        "links": [
            {**asdict(row), "bandwidth": row.bandwidth, "flop_rate": row.flop_rate, "share": row.share} for row in found
        ]
    }
