"""Session of a worker on several GPUs of one host, its results and their views."""

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
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.schema import Status
from prism_bench.run.verification import Entry
from prism_bench.spec.inputs import AnyArray
from prism_bench.spec.tolerance import compare
from prism_bench.units import rate_text, ratio_text, share_text, time_text

# Session of a worker: the first process verifies operations on several GPUs, the others time them.

FAMILY = "links"
_CRITERION = Criterion(precision=0.01, min_samples=12, max_samples=60, seconds=1.0)
_VERIFIED = 3  # launches: the second shows a counter that was not advanced
_WARM = 3  # launches before the first sample: NCCL connects in the first


class LinkSession:
    """A session on an open backend, with a group for each number of devices."""

    def __init__(self, backend: Backend, *, first: bool) -> None:
        self._backend, self._first = backend, first
        self._groups: dict[int, DeviceGroup] = {}
        self._gate = ClockGate()

    def task(self, task: str) -> CaseResult:
        """Run a task; without a group of devices the result is a skipped case with the reason."""
        case = case_of(task)
        try:
            inputs = [case.inputs(device) for device in range(case.devices)]
            if case.devices not in self._groups:
                self._groups[case.devices] = _opened(self._backend, case.devices)
            group = self._groups[case.devices]
            with group.prepare(case, inputs) as call:
                outcome = self._verified(case, call, inputs) if self._first else self._timed(case, call, inputs)
                return self._result(case, **outcome, code={**call.evidence(), **group.facts()})
        except BackendUnavailable as error:
            return self._result(case, "skipped", str(error))
        except MeasurementInvalid as error:
            unmeasured = Measurement("cold_time", "kernel", (), valid=False, reason=str(error))
            return self._result(case, "ok", measurements=(unmeasured,))
        except (PrismBenchError, MemoryError) as error:
            return self._result(case, "failed", f"{type(error).__name__}: {error}")

    def _verified(self, case: GroupCase, call: GroupCall, inputs: list[dict[str, np.ndarray]]) -> dict[str, Any]:
        """Verify several launches on every device, each on poisoned outputs."""
        checks = _Checks(self._backend, case, inputs)
        for _ in range(_VERIFIED):
            call.poison()
            call()
            checks.look(call)
        return checks.outcome()

    def _timed(self, case: GroupCase, call: GroupCall, inputs: list[dict[str, np.ndarray]]) -> dict[str, Any]:
        """Time the call, then verify another timed launch on poisoned outputs."""
        for _ in range(_WARM):
            call()
        series = sample(call.sample, _CRITERION, self._gate)
        call.poison()
        call.sample()
        checks = _Checks(self._backend, case, inputs)
        checks.look(call, metric="cold_time")
        clocks = tuple(taken.clock for taken in series.samples if taken.clock)
        seconds = tuple(taken.seconds for taken in series.samples)
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


def _opened(backend: Backend, devices: int) -> DeviceGroup:
    """Return the backend's group of devices; BackendUnavailable if the backend has no groups."""
    if isinstance(backend, NullBackend):
        return HostGroup(backend)
    if backend.name == "emulator":
        return EmulatedGroup()
    if backend.name == "cuda":
        from prism_bench.extensions.links.groups import CudaGroup

        return CudaGroup(backend.xp, devices)
    raise BackendUnavailable(f"the backend {backend.name} has no links between devices")


class _Checks:
    """Verification of a case: an entry for each comparison of a device's output."""

    def __init__(self, backend: Backend, case: GroupCase, inputs: list[dict[str, np.ndarray]]) -> None:
        self._case, self._xp = case, backend.xp
        arrays = [{name: self._xp.asarray(array) for name, array in by_name.items()} for by_name in inputs]
        operation = case.operation
        self._expected: list[AnyArray] = operation.expected(case.axes, arrays, self._xp)
        self._tolerance = with_terms(operation, case.devices)
        self._magnitude = operation.magnitude(arrays, self._xp) if operation.magnitude else None
        self._entries: list[Entry] = []

    def look(self, call: GroupCall, **where: str) -> None:
        """Compare the output of every device with its reference."""
        for device, (output, expected) in enumerate(zip(call.outputs(), self._expected, strict=True)):
            comparison = compare(
                self._xp.asarray(output),
                expected,
                self._tolerance,
                self._xp,
                terms=self._tolerance.terms,
                magnitude=self._magnitude,
            )
            entry: Entry = {
                "seed": 0,
                "passed": comparison.passed,
                "of": int(expected.size),
                "where": "float64",
                "tolerance": self._tolerance.name,
                "place": list(comparison.place),
                **{name: getattr(comparison, name) for name in _KEPT},
                "output": f"device {device}",
                **where,
            }
            self._entries.append(entry)

    def outcome(self) -> dict[str, Any]:
        """Return status, reason and entries for a result."""
        wrong = next((entry for entry in self._entries if not entry["passed"]), None)
        reason = wrong and (
            f"{self._case.name}, {wrong['output']}: {wrong['differing']} of {wrong['compared']} elements differ, the "
            f"worst is {wrong['actual']:.9g}, reference {wrong['expected']:.9g}"
        )
        return {"status": "wrong" if wrong else "ok", "reason": reason, "verification": tuple(self._entries)}


_KEPT = ("compared", "differing", "max_error", "max_relative", "norm_error", "actual", "expected")


# Results of operations on several GPUs: bandwidth of each GPU, and the fused kernel against the replaced program.

_STATUS_BAD = ("wrong", "crashed", "timed out", "failed")


@dataclass(frozen=True)
class LinkRow:
    """An operation with the `seconds` of its slowest GPU, None if it was not measured.

    `sent` are the bytes that each GPU has to send at least, `bandwidth` these bytes over the time. `ceiling` is the
    best bandwidth of the operations that only move data, in the same run on as many GPUs. `against` is the time of the
    replaced form over the time of this form.
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
    """Return a row for every operation of the record, in its order; no rows for a record of kernels."""
    cases = [case for case in record.cases if case.family == FAMILY]
    seconds = {case.name: valid_median(case, "cold_time") for case in cases}
    ceilings: dict[int, float] = {}  # by number of GPUs, the best bandwidth of operations that only move data
    for case in cases:
        operation, measured = OPERATIONS.get(case.kernel), seconds[case.name]
        if measured and case.bytes and operation and operation.is_link_ceiling:
            ceilings[_devices(case)] = max(ceilings.get(_devices(case), 0.0), case.bytes / measured)
    return tuple(_row(case, cases, seconds, ceilings.get(_devices(case))) for case in cases)


def _row(
    case: CaseResult, cases: Sequence[CaseResult], seconds: dict[str, float | None], ceiling: float | None
) -> LinkRow:
    measured, form = seconds[case.name], case.variant or ""
    before = next(
        (
            seconds[replaced.name]
            for replaced in cases
            if replaced.before == f"{case.kernel}:{form}" and replaced.workload == case.workload
        ),
        None,
    )
    measurement = case.measurement("cold_time")
    unmeasured = measurement.reason if measurement and not measurement.valid else None
    return LinkRow(
        name=case.name,
        operation=case.kernel,
        form=form,
        label=case.label,
        devices=_devices(case),
        status=case.status,
        reason=case.reason or unmeasured,
        seconds=measured,
        sent=case.bytes,
        flops=case.flops,
        ceiling=ceiling,
        against=before / measured if before and measured else None,
    )


def _devices(case: CaseResult) -> int:
    return int(case.workload.get("devices", 0))


def exit_code(links: Sequence[LinkRow]) -> int:
    """Return 1 if an operation is wrong or failed, 2 if no operation could run, else 0."""
    if any(row.status in _STATUS_BAD for row in links):
        return 1
    return 0 if any(row.status == "ok" for row in links) else 2


# Operations on several GPUs as a table and as JSON.

_STYLES = {"ok": "green", "skipped": "yellow"}
_NOTE = (
    "time: all GPUs start together, caches cleared; that of the slowest between its events. bandwidth: the bytes that "
    "each GPU has to send at least over the time; share: of the best operation that only moves data"
)


def links_view(links: Sequence[LinkRow]) -> RenderableType:
    """Return what `links` prints, for a Rich console."""
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for place, column in enumerate(
        ("operation", "label", "GPUs", "right", "time", "bandwidth", "share", "arithmetic", "speedup")
    ):
        table.add_column(column, justify="right" if place > 1 else "left", overflow="fold")
    for row in links:
        table.add_row(*_cells(row))
    reasons = dict.fromkeys(f"{row.operation}:{row.form}: {row.reason}" for row in links if row.reason)
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


def links_json(links: Sequence[LinkRow]) -> dict[str, Any]:
    """Return the rows as plain JSON values; unmeasured values are null."""
    return {
        "links": [
            {**asdict(row), "bandwidth": row.bandwidth, "flop_rate": row.flop_rate, "share": row.share} for row in links
        ]
    }
