"""The boards of each kind of GPU: what is known of them, their anchors, the factors between them, and A/A over them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import exp
from statistics import fmean

from prism_bench.analysis.boards.agreement import BoardAgreement, agreement
from prism_bench.analysis.boards.factors import BoardFactor, BoardModel
from prism_bench.analysis.boards.known import KnownBoards
from prism_bench.analysis.boards.observed import machines_of
from prism_bench.analysis.distributions import binomial_tail
from prism_bench.record.identity import BoardTable
from prism_bench.record.store import History

# Kernels that every board measures in every run, by what limits them: the `ceiling` of their specs.
ANCHORS = {"launch": "null", "bandwidth": "copy", "read_bandwidth": "read", "fp32": "FMA", "tensor": "tensor"}
PROMISED = 0.005  # of verdicts on one machine code over two boards
BY_CHANCE = 0.01


@dataclass(frozen=True)
class BoardRow:
    """One board: its `facts`, in how many `runs` it measured something, the newest one, and its `anchors`.

    An anchor is the board's time over the mean of all boards that measured the same.
    """

    uuid: str
    facts: BoardTable
    runs: int
    newest: str
    anchors: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class BoardKind:
    """The boards of one machine (that is, of one kind of GPU) and backend, in one metric.

    `pairs` are the factors of the second of two boards against the first. `missing` are the anchors that no kernel of
    the catalogue measures, or that no board has a time of.
    """

    machine: str
    backend: str
    metric: str
    boards: tuple[BoardRow, ...]
    pairs: Mapping[tuple[str, str], BoardFactor]
    agreement: BoardAgreement
    missing: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether A/A over boards calls more changes than PROMISED, beyond chance."""
        found = self.agreement
        return bool(found.false) and binomial_tail(found.false - 1, found.given, PROMISED) < BY_CHANCE


def kinds(history: History, metric: str, anchors: Mapping[str, str]) -> Iterator[BoardKind]:
    """Yield the boards of each machine and backend; `anchors` has the ceiling of each kernel with one."""
    for machine, backend in machines_of(history):
        known = KnownBoards(lambda: history, machine, backend)
        model = known.model(metric)
        if model.boards:
            rows = tuple(_rows(known.own(), model, anchors))
            pairs = {pair: model.pair(*pair).factor for pair in combinations(model.boards, 2)}
            seen = {kind for row in rows for kind in row.anchors}
            missing = tuple(name for name in ANCHORS.values() if name not in seen) if len(rows) > 1 else ()
            yield BoardKind(machine, backend, metric, rows, pairs, agreement(model.seen), missing)


def _rows(own: History, model: BoardModel, anchors: Mapping[str, str]) -> Iterator[BoardRow]:
    facts = {str(board["uuid"]): board for record in own.records for board in record.boards}
    levels = _levels(model, anchors)
    for board, uuid in enumerate(model.boards):
        chosen: list[int] = model.seen.sessions[model.seen.boards == board].tolist()
        records = sorted({model.seen.records[session] for session in chosen})
        yield BoardRow(uuid, facts.get(uuid, {"uuid": uuid}), len(records), own.records[records[-1]].created,
                       levels[uuid])  # fmt: skip


def _levels(model: BoardModel, anchors: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return each board's anchors: its times over the mean of the boards that measured the same units."""
    logs: dict[str, dict[str, list[float]]] = {uuid: {} for uuid in model.boards}
    for unit, case in enumerate(model.seen.cases):
        kind = anchors.get(case.partition("[")[0].partition(":")[0])
        measured = {uuid: known[0] for uuid in model.boards if (known := model.median(uuid, unit))}
        if kind in ANCHORS and len(measured) > 1:
            for uuid, log in measured.items():
                logs[uuid].setdefault(ANCHORS[kind], []).append(log - fmean(measured.values()))
    return {uuid: {kind: exp(fmean(own)) for kind, own in found.items()} for uuid, found in logs.items()}
