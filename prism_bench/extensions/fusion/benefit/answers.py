"""How long a host waits for one evaluation of a chain, and what one of many costs: served, replayed, launched.

The times are those of the extension of persistent kernels; without it there are none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.extension import installed
from prism_bench.spec.case import Case

if TYPE_CHECKING:
    from prism_bench.extensions.persistent.record import ItemSpread, ItemTimes, LatencyRecord

STAGE = "persistent"  # the stage that is served, and the extension that serves it; others are launched or replayed


@dataclass(frozen=True)
class ChainAnswer:
    """How long a host waits for one stage in one form.

    `answer` is from the host's request to its knowing that all is done, `each` the share of one of many requests made
    at once; `against_graph` is the fastest graph's answer over this one's, None where no graph was timed. `launches`
    are what the host issues for one evaluation.
    """

    stage: str
    form: str
    launches: int
    answer: "ItemSpread"
    each: "ItemSpread"
    error: float | None
    against_graph: float | None


def read_times(path: Path | None, folder: Path) -> "LatencyRecord | None":
    """Return the times of served items: of the file, else the newest in `folder`; None where there are none."""
    if all(one.name != STAGE for one in installed()):
        return None
    from prism_bench.extensions.persistent.record import newest, read_latencies

    chosen = path or newest(folder)
    return read_latencies(chosen) if chosen else None


def answers(
    stages: Mapping[str, Case], launches: Mapping[str, int], record: "LatencyRecord | None"
) -> tuple[ChainAnswer, ...]:
    """Return the chain's stages as `record` has them, the empty item first; none without a record that served it.

    `launches` is how many launches a stage's kernels take where they are launched.
    """
    if record is None or STAGE not in stages:
        return ()
    from prism_bench.extensions.persistent import PERSISTENT
    from prism_bench.extensions.persistent.record import EMPTY, GRAPH

    rows = [(stage, row) for stage, case in stages.items() for row in _rows(stage, case, record)]
    if not any(stage == STAGE for stage, _ in rows):
        return ()
    empty = record.row(EMPTY, PERSISTENT)
    best = min((row.answer.median for _, row in rows if row.form == GRAPH), default=None)
    every = ([(EMPTY, empty)] if empty else []) + rows
    issued = {PERSISTENT: 0, GRAPH: 1}
    return tuple(
        ChainAnswer(
            stage, row.form, issued.get(row.form, launches.get(stage, 0)), row.answer, row.each, row.error,
            best / row.answer.median if best and stage != EMPTY else None,
        )
        for stage, row in every
    )  # fmt: skip


def _rows(stage: str, case: Case, record: "LatencyRecord") -> "list[ItemTimes]":
    from prism_bench.extensions.persistent import FORMS
    from prism_bench.extensions.persistent.record import GRAPH, LAUNCH

    forms = FORMS if stage == STAGE else (GRAPH, LAUNCH)
    return [row for form in forms if (row := record.row(case.name, form))]
