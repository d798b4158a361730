"""A part of a history: some cases, metrics or machines."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy

from prism_bench.errors import unknown
from prism_bench.store import History


def chosen(
    history: History, names: Sequence[str] = (), metrics: Sequence[str] = (), machines: Sequence[str] = ()
) -> History:
    """The part of the history that is of these machines and metrics and of cases with these names; all without one.

    A name is that of a kernel, of a variant (`kernel:variant`) or of a case in full. What no record knows is an error.
    """
    if not history.records:
        return history
    points = history.points
    keep = numpy.ones(len(points), bool)
    for column, wanted in (("case", _cases(points["case"].cat.categories, names)), ("metric", metrics)):
        if wanted:
            _require("metric", wanted, points[column].cat.categories)
            keep &= points[column].isin(wanted).to_numpy()
    return _of_machines(replace(history, points=points[keep]), machines)


def _cases(known, names):
    """Every known case that one of the names means."""
    found = {name: [case for case in known if name in _names(case)] for name in names}
    for name in names:
        if not found[name]:
            raise unknown("kernel or case", name, {one for case in known for one in _names(case)})
    return [case for cases in found.values() for case in cases]


def _names(case):
    kernel = case.partition("[")[0]
    return case, kernel, kernel.partition(":")[0]


def _of_machines(history: History, machines):
    if not machines:
        return history
    _require("machine", machines, {facts.machine for facts in history.records})
    kept = [place for place, facts in enumerate(history.records) if facts.machine in machines]
    places = numpy.full(len(history.records), -1)
    places[kept] = numpy.arange(len(kept))
    points = history.points.assign(record=places[history.points["record"].to_numpy()])
    return replace(history, points=points[points["record"] >= 0], records=tuple(history.records[one] for one in kept))


def _require(kind: str, wanted: Sequence[str], known: Collection[str]):
    for one in wanted:
        if one not in known:
            raise unknown(kind, one, known)
