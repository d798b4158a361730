"""Results of operations on several GPUs: bandwidth of each GPU, and the fused kernel against what it replaces."""

from collections.abc import Sequence
from dataclasses import dataclass

from prism_bench.extensions.links.operations import OPERATIONS
from prism_bench.extensions.links.session import FAMILY
from prism_bench.measure.limits import valid_median
from prism_bench.record.run_record import CaseResult, RunRecord

STATUS_BAD = ("wrong", "crashed", "timed out", "failed")


@dataclass(frozen=True)
class LinkRow:
    """One operation; `seconds` of the slowest GPU, None where nothing was measured.

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
        name=case.name, operation=case.kernel, form=form, label=case.label, devices=_devices(case),
        status=case.status, reason=case.reason or _unmeasured(case), seconds=own, sent=case.bytes, flops=case.flops,
        ceiling=ceiling, against=before / own if before and own else None,
    )  # fmt: skip


def _alike(one: CaseResult, other: CaseResult) -> bool:
    return one.workload == other.workload


def _unmeasured(case: CaseResult) -> str | None:
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
    if any(row.status in STATUS_BAD for row in found):
        return 1
    return 0 if any(row.status == "ok" for row in found) else 2
