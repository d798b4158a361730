"""What the gate finds in a record, with all that is kept next to it: baseline, earlier records and noise floors."""

from pathlib import Path

from prism_bench.analysis.boards.known import KnownBoards
from prism_bench.analysis.compare.earlier_runs import earlier_runs
from prism_bench.analysis.compare.noise import stored_noise
from prism_bench.analysis.gate.against_baseline import baseline_part
from prism_bench.analysis.gate.against_history import trend_part
from prism_bench.analysis.gate.against_last import earlier_records, last_part, once
from prism_bench.analysis.gate.checks import Gate, gate
from prism_bench.analysis.reading import read
from prism_bench.analysis.trend.choice import kept_floors
from prism_bench.catalogue import Catalogue
from prism_bench.record import store


def judged(source: Path | None, catalogue: Catalogue, runs: Path, noise: Path) -> Gate:
    """Return what the gate finds in the record at `source`, with the records below `runs` and noise floors in `noise`.

    Without a `source` it is the record below `runs` that was measured last; of another tool's records that of the
    newest commit, since other tools measure commits in any order. Raise a ResultsError where there is no record, and
    for a record, a baseline or a budget that cannot be read or does not fit.
    """
    path = source or store.newest(runs)
    record = store.read(path)
    if source is None and record.imported and (newest := store.newest_commit(runs)) != path:
        path, record = newest, store.read(newest)
    reading = read(record, catalogue)
    history = store.read_history(runs)
    floors = stored_noise(str(reading.record.machine.get("id")), noise)
    boards = KnownBoards(lambda: history, str(reading.record.machine.get("id")), reading.record.backend)
    earlier = earlier_records(reading.record, history, runs)
    known = earlier_runs([one.record for one in earlier]).known_apart if earlier else {}
    baseline = baseline_part(reading, path, runs, floors, boards, known)
    last = once(last_part(reading, history, runs, floors, earlier), [baseline])
    return gate(reading, path, [baseline, last, trend_part(history, reading.record, kept_floors(history, noise))])
