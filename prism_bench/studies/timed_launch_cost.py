"""What verifying timed launches costs: the share of a measuring process's time, case by case, and who is accused."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from prism_bench.case import Case
from prism_bench.run.session import MeasuringSession
from prism_bench.run_record import CaseResult
from prism_bench.studies.csv_table import write_rows

MOST_SHARE = 0.02


@dataclass(frozen=True)
class CaseCost:
    """One case: its status, the seconds that it took, those of them that went into looking at timed launches.

    `invalid` are the reasons of its kernel's measurements that cannot be trusted.
    """

    case: str
    status: str
    seconds: float
    looking: float
    invalid: str


def costs(session: MeasuringSession, cases: Iterable[Case], limit: float) -> Iterator[CaseCost]:
    """Yield the cost of each case in one process, until `limit` seconds are over."""
    started = time.perf_counter()
    for case in cases:
        before, looked = time.perf_counter(), session.looking
        (result,) = session.task(case.task)
        now = time.perf_counter()
        yield CaseCost(case.name, result.status, now - before, session.looking - looked, _invalid(result))
        if now - started > limit:
            return


def _invalid(result: CaseResult) -> str:
    if result.status != "ok":
        return result.reason or ""
    return "; ".join(f"{one.metric}: {one.reason}" for one in result.measurements if one.distrusted)


def share(found: Iterable[CaseCost]) -> float:
    """Return the share of all time that looking took; 0 where nothing was measured."""
    pairs = [(one.looking, one.seconds) for one in found]
    return sum(looking for looking, _ in pairs) / max(sum(seconds for _, seconds in pairs), 1e-9)


def write_table(found: Iterable[CaseCost], path: Path) -> None:
    """Write one line per case, seconds to the microsecond."""
    write_rows(CaseCost, map(_rounded, found), path)


def _rounded(one: CaseCost) -> list[object]:
    return [round(value, 6) if isinstance(value, float) else value for value in astuple(one)]
