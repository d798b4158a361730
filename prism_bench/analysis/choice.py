"""A part of a record: some of its cases, with the kernels that measure the machine."""

from collections.abc import Sequence
from dataclasses import replace

from prism_bench.errors import unknown
from prism_bench.record.run_record import CaseResult, RunRecord


def with_cases(record: RunRecord, names: Sequence[str]) -> RunRecord:
    """Return the record with the cases that the names choose; all of them without names.

    A name is a kernel, `kernel:variant`, or a case in full. Kernels that measure the machine stay, since their ceilings
    are part of every other result. The times of the run's stages are left out. A UsageError for a name that no case
    has.
    """
    if not names:
        return record
    for name in names:
        if not any(name in _names(case) for case in record.cases):
            raise unknown("kernel or case", name, {name for case in record.cases for name in _names(case)})
    chosen = [case for case in record.cases if case.ceiling or set(names) & set(_names(case))]
    return replace(record, cases=tuple(chosen), spent={})


def _names(case: CaseResult) -> tuple[str, str, str]:
    kernel = case.name.partition("[")[0]
    return case.name, kernel, kernel.partition(":")[0]
