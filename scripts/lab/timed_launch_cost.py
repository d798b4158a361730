"""What verifying timed launches costs: the share of a measuring process's time, case by case, and who is accused."""

import argparse
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from lab import REPOSITORY
from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.record.run_record import CaseResult
from prism_bench.run.session import MeasuringSession
from prism_bench.run.settings import Settings
from prism_bench.spec.case import Case
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

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

    def rounded(self) -> "CaseCost":
        """Return the same with seconds to the microsecond."""
        return replace(self, seconds=round(self.seconds, 6), looking=round(self.looking, 6))


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


def main() -> int:
    """Time the cases and print the share; return 1 where it is above MOST_SHARE, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--catalogue", type=Path, default=REPOSITORY / "kernels")
    parser.add_argument("--label", action="append", help="S0 and S1 unless given")
    parser.add_argument("--process", type=int, default=1, help="0 verifies first and times libraries after that")
    parser.add_argument("--limit", type=float, default=100.0, help="seconds after which no case begins")
    parser.add_argument("--seed", type=int, default=0, help="of the order of cases")
    parser.add_argument("--peers", action="store_true", help="time the libraries too, as a run does")
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    catalogue = discover(chosen.catalogue)
    cases = list(catalogue.cases(labels=tuple(chosen.label or ("S0", "S1"))))
    Random(chosen.seed).shuffle(cases)
    settings = Settings(peers=chosen.peers)
    session = MeasuringSession(open_backend(chosen.backend), catalogue, settings, chosen.process)
    found = list(costs(session, cases, chosen.limit))
    for one in found:
        if one.invalid:
            print(f"{one.case}: {one.status}: {one.invalid}")
    seconds = sum(one.seconds for one in found)
    print(f"{count_text(len(found), 'case')} in {seconds:.1f} s, {share(found):.2%} of it to look at launches")
    if chosen.output:
        write_csv((one.rounded() for one in found), chosen.output)
    return int(share(found) > MOST_SHARE)
