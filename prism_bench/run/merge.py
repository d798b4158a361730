"""Merge of run records: the parts that equal GPUs measured side by side, each with some of the kernels.

Every part measures ceilings for itself, on a fleet the anchors among them, and its own device's limits rejected what is
impossible; the merged record keeps those judgements. A ceiling's samples of all parts that measured it are one
measurement, so that shares in the merged record refer to the median of the machine's GPUs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from prism_bench.errors import ResultsError, UsageError
from prism_bench.record.identity import boards_together
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.run.record_builder import combined, record_order, seconds_of

Part = tuple[str, RunRecord]  # the file that it comes from, for errors
_OF_EACH = ("choices", "stale")  # of tuning: by case, so each part has its own


def merge(parts: Sequence[Part]) -> RunRecord:
    """Return the parts as one record, its cases in the order of every record.

    `created` is the earliest part's, `duration` the longest one's: the wall time, if they ran side by side. An
    incomplete part, or one that is a merged record, is treated like any other. A ResultsError names both files where
    two are one record, differ in a circumstance, or have a kernel in common that is no ceiling.
    """
    if len(parts) < 2:
        raise UsageError("a part alone is a record already; name two or more")
    for place, part in enumerate(parts):
        for earlier in parts[:place]:
            _require_of_one_run(earlier, part)
    records = _with_boards([record for _, record in parts])
    merged_parts = tuple(part for record in records for part in record.parts or (_part_entry(record),))
    return replace(
        records[0],
        created=min(record.created for record in records),
        duration=max(record.duration for record in records),
        complete=all(record.complete for record in records),
        machine=_machine(records[0].machine, {part["uuid"] for part in merged_parts}),
        monitor=tuple(entry for record in records for entry in record.monitor),
        tuning=_tuning(records),
        cases=_cases(records),
        parts=merged_parts,
        spent=seconds_of(record.spent for record in records),
        boards=boards_together(record.boards for record in records),
    )


def _with_boards(records: Sequence[RunRecord]) -> list[RunRecord]:
    """Return the records; where several boards measured them, each case has its own, as far as it is known."""
    if len({uuid for record in records for uuid in record.uuids}) < 2:
        return list(records)
    return [replace(one, cases=tuple(replace(case, board=one.board_of(case)) for case in one.cases)) for one in records]


def _require_of_one_run(earlier: Part, part: Part) -> None:
    (here, one), (there, other) = earlier, part
    if one == other:
        raise ResultsError(f"{there}: it is the same record as {here}; each part counts once")
    before, after = _circumstances(one), _circumstances(other)
    for name in before | after:
        if before.get(name) != after.get(name):
            mine, theirs = (repr(facts[name]) if name in facts else "absent" for facts in (after, before))
            raise ResultsError(
                f"{there}: its {name} is {mine}, that of {here} is {theirs}; parts of one run agree in it"
            )
    _require_apart(earlier, part)


def _circumstances(record: RunRecord) -> dict[str, object]:
    """Return by dotted name what parts of one run have in common."""
    machine = {key: value for key, value in record.machine.items() if key != "uuid"}
    tuning = {key: value for key, value in record.tuning.items() if key not in _OF_EACH}
    return dict(_leaves({
        "backend": record.backend, "catalogue": record.catalogue, "commit": record.commit, "dirty": record.dirty,
        "machine": machine, "software": record.software, "protocol": record.protocol, "tuning": tuning,
    }))  # fmt: skip


def _leaves(values: Mapping[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _require_apart(earlier: Part, part: Part) -> None:
    """Raise a ResultsError where a kernel is in both, except ceilings that were launched the same way in both."""
    (here, one), (there, other) = earlier, part
    known, kernels = {case.name: case for case in one.cases}, set(_kernels(one))
    for case in other.cases:
        if not case.ceiling and case.kernel in kernels:
            what = f"case '{case.name}'" if case.name in known else f"kernel '{case.kernel}'"
            raise ResultsError(f"{there}: {what} is in {here} too; a kernel and all of its variants belong in one part")
        if case.name in known and known[case.name].configuration != case.configuration:
            raise ResultsError(
                f"{there}: its ceiling '{case.name}' was launched with {case.configuration}, that of {here} with "
                f"{known[case.name].configuration}"
            )


def _kernels(record: RunRecord) -> list[str]:
    """Return the kernels that are no ceilings, sorted."""
    return sorted({case.kernel for case in record.cases if not case.ceiling})


def _part_entry(record: RunRecord) -> dict[str, Any]:
    uuid = record.machine.get("uuid")
    return {"uuid": uuid, "created": record.created, "duration": record.duration, "kernels": _kernels(record)}


def _machine(machine: dict[str, Any], uuids: set[str | None]) -> dict[str, Any]:
    shared = {key: value for key, value in machine.items() if key != "uuid"}
    return machine if len(uuids) == 1 else shared


def _tuning(records: Sequence[RunRecord]) -> dict[str, Any]:
    tuning = {key: value for key, value in records[0].tuning.items() if key not in _OF_EACH}
    for key in _OF_EACH:
        found = [record.tuning[key] for record in records if key in record.tuning]
        tuning |= {key: {name: value for choices in found for name, value in choices.items()}} if found else {}
    return tuning


def _cases(records: Sequence[RunRecord]) -> tuple[CaseResult, ...]:
    found: dict[str, list[CaseResult]] = {}
    for record in records:
        for case in record.cases:
            found.setdefault(case.name, []).append(case)
    return tuple(sorted(map(_joined, found.values()), key=record_order))


def _joined(results: Sequence[CaseResult]) -> CaseResult:
    """Return the one result as it is; a ceiling in several parts has the status of the worst."""
    gravity = {"ok": 2, "skipped": 1}
    if len(results) == 1:
        return results[0]
    apart = len({result.board for result in results}) > 1
    ordered = sorted(results, key=lambda result: gravity.get(result.status, 0))
    found = combined([_by_process(result) if apart else result for result in ordered])
    return replace(found, board=None) if apart else found


def _by_process(case: CaseResult) -> CaseResult:
    """Return the case with the board of each process, where one board measured it; a merged record has them already."""
    if case.board is None:
        return case
    boards = [(case.board,) * len(one.processes) for one in case.measurements]
    measured = [replace(one, boards=own) for one, own in zip(case.measurements, boards, strict=True)]
    return replace(case, measurements=tuple(measured))
