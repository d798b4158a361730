"""History: all records below a folder as one table of points, the oldest first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.errors import ResultsError
from prism_bench.record_check import checked
from prism_bench.run_record import RunRecord, encode
from prism_bench.store import cache
from prism_bench.store.columns import PointBlock, block, together
from prism_bench.store.points import NUMBERS, WORDS, Facts, points_in
from prism_bench.store.processes import in_processes
from prism_bench.store.records import in_order, path_for, records_in, text_at

if TYPE_CHECKING:
    import pandas

_Known = tuple[Facts, PointBlock]
_Run = tuple[str, str, str, str | None, str]


@dataclass(frozen=True)
class HistoryProblem:
    """A file that the history leaves out, and why; `double` where another file has the same run."""

    file: str
    reason: str
    double: bool = False


@dataclass(frozen=True, eq=False)
class History:
    """Points, one row per measurement with samples; `records`, the facts of each record, oldest first; `problems`.

    Columns of `points`: `record` (the place in `records`), `case`, `metric`, `subject`, `code`, `doubt` (categories),
    `value` (median, s), `clock` (mean SM clock, Hz; 0 where none was read), `samples`, `throttled`.
    `doubt` is empty where the point can be trusted.
    """

    points: "pandas.DataFrame"
    records: tuple[Facts, ...]
    problems: tuple[HistoryProblem, ...]


def read_history(
    root: Path | str,
    report: Callable[[int, int], None] | None = None,
    more: Iterable[RunRecord] = (),
    shown: Callable[[Path, bytes | bytearray], None] | None = None,
) -> History:
    """Return the history of all records below `root`, and of `more`.

    What was read before and has not changed since comes from a cache. A record that cannot be read, or that is there
    twice, is one problem more and harms no other. Many new records are read by several processes, which import the
    caller's main module: a script of yours needs its `if __name__ == "__main__":`. `report` is called with
    how many of the new files have been read; `shown`, a function of a module, with the JSON of each by its reader.
    """
    root = Path(root)
    paths = {path.relative_to(root).as_posix(): path for path in records_in(root)}
    stamps = {file: stamp for file, path in paths.items() if (stamp := _stamp(path)) is not None}
    before = cache.kept(root)
    old = {file: one for file, one in before.items() if stamps.get(file) == one.stamp}
    changed = [(paths[file], file, stamp) for file, stamp in stamps.items() if file not in old]
    blocks = list(old.values())
    for done, one in enumerate(in_processes(partial(_block, shown), changed), 1):
        blocks.append(one)
        if report:
            report(done, len(changed))
    if changed or len(old) < len(before):
        cache.keep(root, blocks)
    return history_of([*blocks, *map(_imported, more)])


def unusable_newest(history: History) -> list[HistoryProblem]:
    """Return the unreadable files that would be the newest record of their machine: their content is unknown."""
    newest: dict[str, str] = {}
    problems = {problem.file: problem for problem in history.problems if not problem.double}
    for file in [*(facts.file for facts in history.records), *problems]:
        machine = file.rpartition("/")[0]
        newest[machine] = max(newest.get(machine, file), file, key=lambda name: in_order(Path(name)))
    return [problems[file] for file in newest.values() if file in problems]


def _stamp(path: Path) -> str | None:
    try:
        return cache.stamp_of(path)
    except OSError:
        return None  # gone since it was listed


def _block(shown: Callable[[Path, bytes | bytearray], None] | None, changed: tuple[Path, str, str]) -> PointBlock:
    path, file, stamp = changed
    try:
        text = text_at(path)
        found = block(file, stamp, *points_in(checked(text, str(path)), file))
    except ResultsError as error:
        return block(file, stamp, None, {}, problem=str(error))
    if shown:
        shown(path, text)
    return found


def _imported(record: RunRecord) -> PointBlock:
    """Return the block of a record without a file."""
    name = path_for(record, Path()).as_posix()
    return block(name, "", *points_in(checked(encode(record), name), name))


def history_of(blocks: Sequence[PointBlock]) -> History:
    """Return the history of all blocks together."""
    import pandas

    problems = [HistoryProblem(one.file, one.problem) for one in blocks if one.problem]
    found = sorted(((one.facts, one) for one in blocks if one.facts), key=lambda pair: (pair[0].created, pair[1].file))
    found, doubles = _once(found)
    columns, vocabulary = together(one for _, one in found)
    words = {word: pandas.Categorical.from_codes(columns[word], pandas.Index(vocabulary[word])) for word in WORDS}
    numbers = {name: columns[name] for name in NUMBERS}
    points = pandas.DataFrame({"record": columns["block"], **words, **numbers}, copy=False)
    return History(points, tuple(facts for facts, _ in found), (*problems, *doubles))


def _once(blocks: Sequence[_Known]) -> tuple[list[_Known], list[HistoryProblem]]:
    """Return the blocks, of two of one run the one with more points, and a problem for each that was left out."""
    best: dict[_Run, _Known] = {}
    for facts, one in blocks:
        other = best.get(_run(facts))
        if other is None or one.rows > other[1].rows:
            best[_run(facts)] = facts, one
    doubles = [(one, best[_run(facts)][1]) for facts, one in blocks if best[_run(facts)][1] is not one]
    problems = [HistoryProblem(one.file, f"the same run as {other.file}", double=True) for one, other in doubles]
    return list(best.values()), problems


def _run(facts: Facts) -> _Run:
    return facts.machine, facts.backend, facts.created, facts.commit, facts.device


def all_points(history: History) -> "pandas.DataFrame":
    """Return the points, each with facts of its record: machine, backend, created, commit, dirty, file."""
    import pandas

    names = ("machine", "backend", "created", "commit", "dirty", "file")
    facts = pandas.DataFrame([[getattr(one, name) for name in names] for one in history.records], columns=names)
    return facts.iloc[history.points["record"]].reset_index(drop=True).join(
        history.points.drop(columns="record").reset_index(drop=True)
    )  # fmt: skip
