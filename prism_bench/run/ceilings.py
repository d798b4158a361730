"""Ceiling benchmarks of a run: the kernels that measure the machine itself."""

from collections.abc import Iterable

from prism_bench.case import Case
from prism_bench.catalogue import Catalogue
from prism_bench.measure.limits import is_bandwidth


def with_ceilings(catalogue: Catalogue, backend: str, cases: Iterable[Case]) -> list[Case]:
    """Return every case that a timed run measures, each once: on a device the ceiling benchmarks come first."""
    return list(dict.fromkeys([*(ceiling_cases(catalogue) if backend == "cuda" else ()), *cases]))


def ceiling_cases(catalogue: Catalogue) -> list[Case]:
    """Return the kernels that measure the machine: launch overhead, ceilings, and the proof that caches were cold.

    Each at its smallest and largest workload; those of memory at every one, since which size and pattern is quickest
    differs from device to device. Of other patterns only reads have the smallest: in the cache they too prove it cold.
    """
    ceilings = [case for case in catalogue.cases() if case.spec.ceiling]
    kernels = [case for case in ceilings if not case.variant]
    smallest = {case.kernel: case for case in reversed(kernels)}
    largest = {case.kernel: case for case in kernels}
    of_memory = [
        case
        for case in ceilings
        if is_bandwidth(case.spec.ceiling or "")
        and not (case.variant and case.label == "S0" and case.spec.ceiling != "read_bandwidth")
    ]
    return list(dict.fromkeys([*smallest.values(), *largest.values(), *of_memory]))
