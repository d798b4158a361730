"""Parts of a history: some cases, metrics or machines, and the noise floors kept for its machines."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from prism_bench.analysis.compare.noise import path_for, read_noise
from prism_bench.errors import unknown
from prism_bench.record.store import History


def chosen(
    history: History, names: Sequence[str] = (), metrics: Sequence[str] = (), machines: Sequence[str] = ()
) -> History:
    """Return the part of the history of these machines and metrics and of cases with these names; all without one.

    A name is that of a kernel, of a variant (`kernel:variant`) or of a case in full. What no record knows is an error.
    """
    if not history.records:
        return history
    cases, known = _cases(history.names("case"), names), history.names("metric")
    _require("metric", metrics, known)
    only = replace(
        history,
        cases=frozenset(cases) if cases else history.cases,
        metrics=frozenset(metrics) if metrics else history.metrics,
    )
    return _of_machines(only, machines)


def _cases(known: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return every known case that one of the names means."""
    found = {name: [case for case in known if name in _names(case)] for name in names}
    for name in names:
        if not found[name]:
            raise unknown("kernel or case", name, {one for case in known for one in _names(case)})
    return [case for cases in found.values() for case in cases]


def _names(case: str) -> tuple[str, str, str]:
    kernel = case.partition("[")[0]
    return case, kernel, kernel.partition(":")[0]


def _of_machines(history: History, machines: Sequence[str]) -> History:
    if not machines:
        return history
    _require("machine", machines, {facts.machine for facts in history.records})
    kept = [place for place, facts in enumerate(history.records) if facts.machine in machines]
    return replace(history.part(kept), problems=history.problems)


def _require(kind: str, wanted: Sequence[str], known: Collection[str]) -> None:
    for one in wanted:
        if one not in known:
            raise unknown(kind, one, known)


def kept_floors(history: History, folder: Path) -> dict[tuple[str, str, str, str], float]:
    """Return the noise floors by machine, backend, case and metric, as far as `prism-bench noise` measured them."""
    floors: dict[tuple[str, str, str, str], float] = {}
    if not folder.is_dir():
        return floors
    for machine in sorted({facts.machine for facts in history.records}):
        if noise := read_noise(path_for(machine, folder)):
            for (case, metric), floor in noise.floors.items():
                floors[machine, noise.backend, case, metric] = floor.smallest_change
    return floors
