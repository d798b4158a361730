"""The newest run compared with earlier ones: the run before, one of a week before, the baseline."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from prism_bench.analysis.boards.known import KnownBoards
from prism_bench.analysis.compare.comparison import RecordComparison, compare
from prism_bench.analysis.compare.noise import Noise
from prism_bench.analysis.gate.baselines import Baseline
from prism_bench.errors import ResultsError
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.record.store.points import Facts, utc

_WEEK = timedelta(days=7)


def against(
    record: RunRecord,
    earlier: Sequence[Facts],
    runs: Path,
    named: Collection[str],
    reading: tuple[Noise | None, Baseline | None, KnownBoards],
) -> Iterator[tuple[Facts, RecordComparison | str]]:
    """Yield each chosen earlier run with the comparison of `record` to it, or the reason why none exists.

    `named` are the commits that concerns of the gate compare with.
    """
    noise, baseline, boards = reading
    for facts in chosen(record, earlier, baseline, named):
        try:
            older = store.read(runs / facts.file, edges=False)
            yield facts, compare(older, record, noise, names=(name_of(facts), "this run"), boards=boards)
        except ResultsError as error:
            yield facts, str(error)


def name_of(facts: Facts) -> str:
    """`2026-11-20 fd4cb4b0`."""
    return f"{facts.when[:10]} {facts.commit[:8]}" if facts.commit else facts.when[:10]


def chosen(
    record: RunRecord, earlier: Sequence[Facts], baseline: Baseline | None, named: Collection[str]
) -> list[Facts]:
    """Return the run before, the newest one that is a week older, the baseline's and those of the commits `named`.

    Each of them once, the newest first.
    """
    before = (datetime.fromisoformat(utc(record.committed or record.created)) - _WEEK).isoformat() if earlier else ""
    weekly = [facts for facts in earlier if facts.when <= before]
    name = Path(baseline.record).name if baseline else None
    based = [facts for facts in earlier if Path(facts.file).name == name]
    compared = [[facts for facts in earlier if facts.commit == commit][-1:] for commit in named]
    wanted = [*earlier[-1:], *weekly[-1:], *based[-1:], *(facts for found in compared for facts in found)]
    return [facts for facts in reversed(earlier) if facts in wanted]
