"""The newest run compared with earlier ones: the run before, one of a week before, the baseline."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from prism_bench import store
from prism_bench.analysis.boards.known import KnownBoards
from prism_bench.analysis.compare.comparison import RecordComparison, compare
from prism_bench.analysis.compare.noise import Noise
from prism_bench.analysis.gate.baselines import Baseline
from prism_bench.errors import ResultsError
from prism_bench.run_record import RunRecord
from prism_bench.store.points import Facts, utc

_WEEK = timedelta(days=7)


def against(
    record: RunRecord, earlier: Sequence[Facts], runs: Path, reading: tuple[Noise | None, Baseline | None, KnownBoards]
) -> Iterator[tuple[Facts, RecordComparison | str]]:
    """Yield each chosen earlier run with the comparison of `record` to it, or the reason why none exists."""
    noise, baseline, boards = reading
    for facts in chosen(record, earlier, baseline):
        try:
            older = store.read(runs / facts.file)
            yield facts, compare(older, record, noise, names=(name_of(facts), "this run"), boards=boards)
        except ResultsError as error:
            yield facts, str(error)


def name_of(facts: Facts) -> str:
    """`2026-11-20 fd4cb4b0`."""
    return f"{facts.created[:10]} {facts.commit[:8]}" if facts.commit else facts.created[:10]


def chosen(record: RunRecord, earlier: Sequence[Facts], baseline: Baseline | None) -> list[Facts]:
    """Return the run before, the newest one that is a week older, and the baseline's: each once, newest first."""
    before = (datetime.fromisoformat(utc(record.created)) - _WEEK).isoformat() if earlier else ""
    weekly = [facts for facts in earlier if facts.created <= before]
    name = Path(baseline.record).name if baseline else None
    based = [facts for facts in earlier if Path(facts.file).name == name]
    wanted = [*earlier[-1:], *weekly[-1:], *based[-1:]]
    return [facts for facts in reversed(earlier) if facts in wanted]
