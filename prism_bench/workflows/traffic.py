"""Bytes that a kernel's source requests, counted on the emulator, next to the bytes that its spec declares."""

from dataclasses import dataclass, replace

from prism_bench.backends.emulator import EmulatorBackend, EmulatorRunnable, refusal
from prism_bench.errors import PrismBenchError
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import CUDA, Array, Launch

_MODEL_ALLOWANCE = 1.02  # different bytes of inputs and outputs over the declared ones: the model is wrong beyond this
SMALL = 4096  # bytes that a kernel may request as well: parameters that every block reads


@dataclass(frozen=True)
class CaseTraffic:
    """Memory traffic of one call of a case, all its launches together.

    `requested` counts every access of every thread, `touched` the distinct bytes of inputs and outputs, `scratch` the
    distinct bytes of working memory. `complaint` is what exceeds the spec, or why nothing was counted. `left_out` is
    why a form in another language cannot be counted, which is not a defect.
    """

    case: str
    declared: int
    requested: int = 0
    touched: int = 0
    scratch: int = 0
    sectors_per_request: float = 0.0
    wavefronts_per_request: float = 0.0
    launches: int = 0
    complaint: str | None = None
    left_out: str | None = None


def traffic(case: Case, seed: int = 0) -> CaseTraffic:
    """Run the case once with every access watched; its findings and its failures become the complaint."""
    if case.spec.language != CUDA:
        why = refusal(case) or f"the interpreter of {case.spec.language} counts no accesses"
        return CaseTraffic(case.name, case.sizes.bytes_moved, left_out=why)
    try:
        with EmulatorBackend("race", traffic=True).prepare(case, case.inputs(seed)) as runnable:
            runnable()
            counts = _counted(case, runnable)
            return replace(counts, complaint=_complaint(case, counts))
    except PrismBenchError as error:
        return CaseTraffic(case.name, case.sizes.bytes_moved, complaint=str(error))


def _counted(case: Case, runnable: EmulatorRunnable) -> CaseTraffic:
    """Return the sums over the launches; each launch has its own names for its arguments."""
    touched = scratch = 0
    steps = [step for step in runnable.steps if isinstance(step, Launch)]
    counts = [report.traffic for report in runnable.reports if report.traffic is not None]
    for step, counted in zip(steps, counts, strict=True):
        names = case.spec.passed(step)
        for row in counted.arguments:
            argument, unique = case.spec.argument(names[row.argument]), row.unique_read + row.unique_written
            is_scratch = isinstance(argument, Array) and argument.scratch
            scratch, touched = scratch + unique * is_scratch, touched + unique * (not is_scratch)

    def total(name: str) -> int:
        return sum(getattr(count, name) for count in counts)

    return CaseTraffic(
        case=case.name,
        declared=case.sizes.bytes_moved,
        requested=total("bytes_read") + total("bytes_written"),
        touched=touched,
        scratch=scratch,
        sectors_per_request=total("global_sectors") / max(1, total("global_requests")),
        wavefronts_per_request=total("shared_wavefronts") / max(1, total("shared_requests")),
        launches=len(counts),
    )


def _complaint(case: Case, counts: CaseTraffic) -> str | None:
    factor, declared = case.spec.traffic_factor, counts.declared
    if counts.touched > _MODEL_ALLOWANCE * declared:
        return f"touches {counts.touched} bytes of its inputs and outputs; the spec declares {declared}"
    if factor is None or counts.requested <= factor * declared + SMALL:
        return None
    times = counts.requested / max(1, declared)
    return f"asks for {times:.3g} times the declared {declared} bytes; its spec allows {factor:g} times"
