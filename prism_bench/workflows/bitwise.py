"""Bits over boards: a verification on one GPU, whose outputs those on all GPUs of its name are compared with."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory

from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable
from prism_bench.monitor.nvml import VISIBLE, devices, opened, visible
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.run import Progress, Settings, run
from prism_bench.run.pool import measuring
from prism_bench.spec.case import Case


def equal_boards() -> list[str]:
    """Return the UUIDs of the visible GPUs with the name of the first one; empty where NVML does not answer."""
    try:
        with opened() as pynvml:
            listed = visible(devices(pynvml))
    except BackendUnavailable:
        return []
    return [device.uuid for device in listed if device.name == listed[0].name]


def verified_on_boards(
    catalogue: Catalogue,
    backend: str,
    cases: list[Case],
    settings: Settings,
    report: Callable[[Progress], object],
    boards: Sequence[str],
    others: Iterable[str] = (),
) -> RunRecord:
    """Return the record of the first board with all checks, and with the comparison with each other board.

    Other boards verify the cases and compare their outputs; a case that fails there fails. Without several boards it is
    the record of one run.
    """
    if len(boards) < 2:
        return run(catalogue, backend, cases, settings, report, timed=False, others=others)
    others = tuple(others)
    with TemporaryDirectory(prefix="prism-bench-bits-") as folder:
        record: RunRecord | None = None
        for board in boards:
            chosen = replace(settings, outputs=folder, bitwise=settings.bitwise and record is None)
            place = measuring(variables={VISIBLE: board})
            on_board = run(catalogue, backend, cases, chosen, report, timed=False, others=others, place=place)
            record = on_board if record is None else _with_board(record, on_board, board)
            if not record.complete:
                break
    assert record is not None, "there is a first board"
    return record


def _with_board(record: RunRecord, other: RunRecord, board: str) -> RunRecord:
    """Return the record with what another board adds: entries of outputs that were compared, and cases that fail."""
    results = {case.name: case for case in other.cases}
    cases = tuple(_with_result(case, results.get(case.name), board) for case in record.cases)
    return replace(record, cases=cases, complete=record.complete and other.complete)


def _with_result(case: CaseResult, other: CaseResult | None, board: str) -> CaseResult:
    if other is None:
        return case
    entries = tuple(entry for entry in other.verification if entry.get("check") == "boards")
    case = replace(case, verification=(*case.verification, *entries))
    if case.status != "ok" or other.status in ("ok", "skipped"):
        return case
    return replace(case, status=other.status, reason=f"{other.reason} (board {board})")
