"""All records below a folder as one table of points, the oldest first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.errors import ResultsError
from prism_bench.record_check import checked
from prism_bench.run_record import RunRecord, encode
from prism_bench.store import cache
from prism_bench.store.columns import Block, block, together
from prism_bench.store.points import NUMBERS, WORDS, Facts, points_in
from prism_bench.store.processes import in_processes
from prism_bench.store.records import in_order, path_for, records_in, text_at

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Problem:
    """A file that the history goes without, and why; `double` where another file has the same run."""

    file: str
    reason: str
    double: bool = False


@dataclass(frozen=True, eq=False)
class History:
    """`points`, one row per measurement with samples; `records`, the facts of each record, oldest first; `problems`.

    Columns of `points`: `record` (the place in `records`), `case`, `metric`, `subject`, `code`, `doubt` (categories),
    `value` (median, s), `clock` (mean SM clock, Hz; 0 where none was read), `samples`, `throttled`.
    `doubt` is empty where the point can be trusted.
    """

    points: "pandas.DataFrame"
    records: tuple[Facts, ...]
    problems: tuple[Problem, ...]


def read_history(
    root: Path | str,
    report: Callable[[int, int], None] = lambda done, total: None,
    more: Iterable[RunRecord] = (),
    shown: Callable[[Path, bytes | bytearray], None] | None = None,
) -> History:
    """The history of all records below `root`, and of `more`.

    What was read before and has not changed since comes from a cache. A record that cannot be read, or that is there
    twice, is a problem of its own and harms no other. Many new records are read by several processes, which import the
    caller's main module: a script of yours needs its `if __name__ == "__main__":`. `report` is told how many of the
    new files have been read; `shown`, a function of a module, is shown the JSON of each by the process that read it.
    """
    root = Path(root)
    paths = {path.relative_to(root).as_posix(): path for path in records_in(root)}
    stamps = dict(filter(None, map(_stamped, paths.items())))
    before = cache.kept(root)
    old = {file: one for file, one in before.items() if stamps.get(file) == one.stamp}
    changed = [(paths[file], file, stamp) for file, stamp in stamps.items() if file not in old]
    blocks = list(old.values())
    for done, one in enumerate(in_processes(partial(_block, shown), changed), 1):
        blocks.append(one)
        report(done, len(changed))
    if changed or len(old) < len(before):
        cache.keep(root, blocks)
    return history_of([*blocks, *map(_imported, more)])


def unusable_newest(history: History) -> list[Problem]:
    """The files that would be the newest record of their machine and cannot be read: what they held is unknown."""
    newest: dict[str, str] = {}
    problems = {problem.file: problem for problem in history.problems if not problem.double}
    for file in [*(facts.file for facts in history.records), *problems]:
        machine = file.rpartition("/")[0]
        newest[machine] = max(newest.get(machine, file), file, key=lambda name: in_order(Path(name)))
    return [problems[file] for file in newest.values() if file in problems]


def _stamped(item):
    file, path = item
    try:
        return file, cache.stamp_of(path)
    except OSError:
        return None  # gone since it was listed


def _block(shown: Callable[[Path, bytes | bytearray], None] | None, changed: tuple[Path, str, str]) -> Block:
    path, file, stamp = changed
    try:
        text = text_at(path)
        found = block(file, stamp, *points_in(checked(text, str(path)), file))
    except ResultsError as error:
        return block(file, stamp, None, {}, problem=str(error))
    if shown:
        shown(path, text)
    return found


def _imported(record: RunRecord) -> Block:
    """The block of a record that has no file of its own."""
    name = path_for(record, Path()).as_posix()
    return block(name, "", *points_in(checked(encode(record), name), name))


def history_of(blocks: Sequence[Block]) -> History:
    """The history that the blocks tell together."""
    import pandas

    problems = [Problem(one.file, one.problem) for one in blocks if one.problem]
    told = sorted((one for one in blocks if one.facts), key=lambda one: (one.facts.created, one.file))
    told, doubles = _once(told)
    columns, vocabulary = together(told)
    words = {word: pandas.Categorical.from_codes(columns[word], vocabulary[word]) for word in WORDS}
    numbers = {name: columns[name] for name in NUMBERS}
    points = pandas.DataFrame({"record": columns["block"], **words, **numbers}, copy=False)
    return History(points, tuple(one.facts for one in told), (*problems, *doubles))


def _once(blocks):
    """The blocks without those whose run another one tells already: of two, the one that tells more stays."""
    best: dict[tuple, Block] = {}
    for one in blocks:
        other = best.get(_run(one))
        if other is None or one.rows > other.rows:
            best[_run(one)] = one
    doubles = [one for one in blocks if best[_run(one)] is not one]
    return list(best.values()), [
        Problem(one.file, f"the same run as {best[_run(one)].file}", double=True) for one in doubles
    ]


def _run(one):
    facts = one.facts
    return facts.machine, facts.backend, facts.created, facts.commit, facts.device


def all_points(history: History) -> "pandas.DataFrame":
    """The points with the facts of their records beside them: machine, backend, created, commit, dirty, file."""
    import pandas

    names = ("machine", "backend", "created", "commit", "dirty", "file")
    facts = pandas.DataFrame([[getattr(one, name) for name in names] for one in history.records], columns=names)
    return facts.iloc[history.points["record"]].reset_index(drop=True).join(
        history.points.drop(columns="record").reset_index(drop=True)
    )  # fmt: skip
