"""Which case of a kernel answers for it: the largest one, and for a case without counters the largest that has some."""

from collections.abc import Collection, Iterable, Sequence

from prism_bench.record.run_record import CaseResult
from prism_bench.spec.workload import LABELS


def size(case: CaseResult) -> tuple[int, int]:
    """Return the key that sorts workloads of a kernel: by label, then by the bytes that must move."""
    return LABELS.index(case.label) if case.label in LABELS else -1, case.bytes


def largest(cases: Sequence[CaseResult]) -> CaseResult | None:
    """Return the largest workload of the kernel itself that has a time; else of its variants, else without a time."""
    timed = [case for case in cases if is_timed(case)]
    own = [case for case in timed if case.variant is None] or timed or list(cases)
    return max(own, key=size, default=None)


def is_timed(case: CaseResult) -> bool:
    """Return whether the kernel has samples."""
    return any(one.samples for one in case.measurements if one.subject == "kernel")


def counted_near(case: CaseResult, others: Iterable[CaseResult], counted: Collection[str]) -> CaseResult | None:
    """Return the largest other workload of the same implementation that is `counted`, by name; None where none is."""
    same = [one for one in others if (one.kernel, one.variant) == (case.kernel, case.variant) and not one.is_edge]
    return max((one for one in same if one.name in counted and one.name != case.name), key=size, default=None)
