"""Ceiling benchmarks of a run: the kernels that measure the machine itself."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from prism_bench.catalogue import Catalogue
from prism_bench.measure.limits import is_bandwidth, measured_limits, peaks_of
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.case import Case


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


def anchor_cases(catalogue: Catalogue, earlier: Iterable[RunRecord]) -> list[Case]:
    """Return those ceiling benchmarks that every board of a fleet measures, so that its own limits are known.

    They are the quickest of each kind in the newest of the `earlier` records of such boards that has the kind, and
    those that prove caches cold. Of a kind that no record has they are all.
    """
    ceilings, chosen = ceiling_cases(catalogue), set[str]()
    kinds = {case.spec.ceiling for case in ceilings}
    for record in earlier:
        quickest = _quickest(record)
        found = [case for case in ceilings if case.spec.ceiling in kinds and case.name in quickest]
        chosen |= {case.name for case in found}
        kinds -= {case.spec.ceiling for case in found}
        if not kinds:
            break
    return [case for case in ceilings if case.name in chosen or case.spec.ceiling in kinds or _proves_cold(case)]


def _proves_cold(case: Case) -> bool:
    return case.label == "S0" and case.spec.ceiling == "read_bandwidth"


def _quickest(record: RunRecord) -> set[str]:
    """Return the names of the cases behind the limits of the board that measured most ceiling benchmarks."""
    measured = [case for case in record.cases if case.ceiling and case.measurements]
    counts = Counter(board for case in measured for board in _boards(record, case))
    own = measured
    if counts:
        board = max(counts, key=lambda one: counts[one])
        own = [_on_board(case, board) for case in measured if board in _boards(record, case)]
    limits = measured_limits(own, record.machine.get("l2_bytes", 0), peaks_of(record.machine))
    return set(limits.sources.values())


def _boards(record: RunRecord, case: CaseResult) -> Sequence[str]:
    """Return the boards that measured the case, each once; none where they are not known."""
    several = dict.fromkeys(board for one in case.measurements for board in one.boards)
    return list(several) or list(filter(None, [record.board_of(case)]))


def _on_board(case: CaseResult, board: str) -> CaseResult:
    """Return the case with the processes that ran on one board."""
    measured: list[Measurement] = []
    for one in case.measurements:
        places = [place for place, own in enumerate(one.boards) if own == board]
        own = tuple(one.processes[place] for place in places)
        measured.append(replace(one, processes=own) if one.boards else one)
    return replace(case, board=None, measurements=tuple(measured))
