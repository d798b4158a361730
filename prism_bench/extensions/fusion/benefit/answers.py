"""How long a host waits for one evaluation of a chain, and what one of many costs: served, replayed, launched."""

from collections.abc import Mapping
from dataclasses import dataclass

from prism_bench.case import Case
from prism_bench.extensions.persistent import FORMS, PERSISTENT
from prism_bench.extensions.persistent.record import EMPTY, GRAPH, LAUNCH, ItemSpread, ItemTimes, LatencyRecord

STAGE = "persistent"  # the stage that is served; the others are launched or replayed


@dataclass(frozen=True)
class Answer:
    """One stage in one form: `answer` from the host's request to its knowing that all is done, `each` the share of one
    of many that were asked for at once; `against_graph` is the fastest graph's answer over this one's, None where no
    graph was timed. `launches` are what the host issues for one evaluation.
    """

    stage: str
    form: str
    launches: int
    answer: ItemSpread
    each: ItemSpread
    error: float | None
    against_graph: float | None


def answers(
    stages: Mapping[str, Case], launches: Mapping[str, int], record: LatencyRecord | None
) -> tuple[Answer, ...]:
    """The chain's stages as `record` has them, the empty item first; none without a record that served the chain.

    `launches` says how many launches a stage's kernels take where they are launched.
    """
    if record is None or STAGE not in stages:
        return ()
    rows = [(stage, row) for stage, case in stages.items() for row in _rows(stage, case, record)]
    if not any(stage == STAGE for stage, _ in rows):
        return ()
    empty = record.row(EMPTY, PERSISTENT)
    graphs = [row.answer.median for _, row in rows if row.form == GRAPH]
    best = min(graphs, default=None)
    return tuple(_answer(stage, row, launches, best) for stage, row in ([(EMPTY, empty)] if empty else []) + rows)


def _rows(stage, case, record) -> list[ItemTimes]:
    forms = FORMS if stage == STAGE else (GRAPH, LAUNCH)
    return [row for form in forms if (row := record.row(case.name, form))]


def _answer(stage, row, launches, best):
    issued = {PERSISTENT: 0, GRAPH: 1}.get(row.form, launches.get(stage, 0))
    faster = best / row.answer.median if best and stage != EMPTY else None
    return Answer(stage, row.form, issued, row.answer, row.each, row.error, faster)
