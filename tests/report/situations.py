"""Planted situations: two runs of one machine, a day apart, between which one thing happened to one case."""

from dataclasses import replace
from pathlib import Path

from prism_bench.record import store
from tests.report.site.pages import moved
from tests.report.synthetic import gpu_record

CASE = ("softmax", "S1")


def well():
    """A record without mishaps."""
    record = gpu_record()
    sound = [case for case in record.cases if case.status == "ok" and not any(m.distrusted for m in case.measurements)]
    return replace(record, cases=tuple(sound))


def later(change=None):
    """The record a day later, in which `change` happened to one case."""
    cases = [change(case) if change and (case.kernel, case.label) == CASE else case for case in well().cases]
    return replace(well(), created="2026-11-21T22:14:05", commit="b" * 40, cases=tuple(cases))


def slower(case):
    return moved(case, 2.0)


def faster(case):
    return moved(case, 0.5)


def doubtful(case):
    reason = "its read bandwidth exceeds the ceiling"
    found = [replace(one, valid=False, reason=reason) if (one.subject, one.metric) == ("kernel", "cold_time") else one
             for one in case.measurements]  # fmt: skip
    return replace(case, measurements=tuple(found))


def wrong(case):
    return replace(case, status="wrong", reason="y[3] is 1.5, reference 0.5", measurements=())


def scattered(record, code):
    """The record with other machine code of every case, whose processes are far apart."""
    cases = [replace(case, code={**case.code, "sass": f"{code} {case.name}"}, measurements=tuple(
        replace(one, processes=tuple(tuple(factor * sample for sample in samples)
                                     for factor, samples in zip((0.7, 1.0, 1.4), one.processes, strict=False)))
        for one in case.measurements)) for case in record.cases]  # fmt: skip
    return replace(record, cases=tuple(cases))


CHANGES = {"regression": slower, "improvement": faster, "untrusted": doubtful, "wrong kernel": wrong, "nothing": None}
SITUATIONS = (*CHANGES, "undecided")


def two_runs(situation):
    """The records of the situation, the older one first."""
    if situation == "undecided":
        return scattered(well(), "a"), scattered(later(), "b")
    return well(), later(CHANGES[situation])


def write(situation: str, runs: Path) -> list[Path]:
    """Write both records below the folder, and return their paths, the older one first."""
    return [store.add_once(record, runs) for record in two_runs(situation)]
