"""Every case as the newest record that holds it shows it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_bench import store
from prism_bench.analysis.reading import Reading, read
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.files import path_part
from prism_bench.raw_source import is_present
from prism_bench.report.site.places import Places
from prism_bench.report.terminal.case_table import Line, lines
from prism_bench.run_record import CaseResult, RunRecord
from prism_bench.store import History
from prism_bench.store.points import Facts

_AT_ONCE = 64  # records that are searched together for the newest times of cases


@dataclass(frozen=True, eq=False)
class ShownCase:
    """A case with its row of the summary, its line of the table, and the reading that they are of.

    `origin` is `newest` for the newest run, `older` for a run before that left fewer cases out, `round` where only a
    round of making kernels faster has timed it, in one process.
    """

    case: CaseResult
    row: Mapping[str, object]
    line: Line
    reading: Reading
    origin: str

    @property
    def created(self) -> str:
        return self.reading.record.created

    @property
    def elsewhere(self) -> dict[str, str | None] | None:
        """The record that it is of, as a page's JSON names it; None where that is the newest run."""
        if self.origin == "newest":
            return None
        return {"origin": self.origin, "created": self.created, "commit": self.reading.record.commit}

    @property
    def implementation(self) -> str:
        return str(self.row["implementation"])


def cases_of(reading: Reading, origin: str, wanted: Collection[str] | None = None) -> Iterator[ShownCase]:
    """Yield the cases of a reading, only the `wanted` ones if there are any named."""
    rows = reading.frame.to_dict("records")
    for row, line in zip(rows, lines(reading), strict=True):
        if wanted is None or line.case.name in wanted:
            yield ShownCase(line.case, {str(key): value for key, value in row.items()}, line, reading, origin)


def newest_cases(
    reading: Reading, own: Sequence[Facts], history: History, places: Places, catalogue: Catalogue | None
) -> dict[str, ShownCase]:
    """Return by name the newest run's cases, then those of the catalogue that an older run or a round timed last."""
    found = {one.case.name: one for one in cases_of(reading, "newest")}
    known = {case.name for case in catalogue.cases()} if catalogue else set()
    for facts, names in _elsewhere(history, own, known - set(found)):
        older = _read(places.runs / facts.file, catalogue)
        found |= {one.case.name: one for one in cases_of(older, "older", names)} if older else {}
    for path in reversed(store.records_in(places.rounds)):
        missing = known - set(found)
        is_own = path.parent.name == path_part(reading.record.machine["id"])
        made = _read(path, catalogue) if missing and is_own else None
        found |= {one.case.name: one for one in cases_of(made, "round", missing)} if made else {}
    return found


def _elsewhere(history: History, own: Sequence[Facts], wanted: Collection[str]) -> Iterator[tuple[Facts, list[str]]]:
    """Yield each record that holds the newest time of wanted cases, with the names of these cases."""
    mine = {facts.file for facts in own}
    places = [place for place, facts in enumerate(history.records) if facts.file in mine][::-1]
    left, cases = set(wanted), dict[int, list[str]]()
    words = {id(one): one for one in (history.stored[place].words["case"] for place in places)}
    names = {number: set(one) for number, one in words.items()}
    for first in range(0, len(places), _AT_ONCE):
        batch = places[first : first + _AT_ONCE]
        known = [place for place in batch if not left.isdisjoint(names[id(history.stored[place].words["case"])])]
        if not known:
            continue
        points = history.part(known).points[["case", "record"]]
        newest = points[points["case"].isin(left)].groupby("case", observed=True)["record"].min()
        for case, number in newest.items():
            cases.setdefault(known[int(number)], []).append(str(case))
        left -= set(newest.index)
    for place in sorted(cases):
        yield history.records[place], cases[place]


def _read(path: Path, catalogue: Catalogue | None) -> Reading | None:
    """Return the reading of an older record; None where it is gone."""
    return judged(store.read(path), catalogue)[0] if is_present(path) else None


def judged(record: RunRecord, catalogue: Catalogue | None) -> tuple[Reading, str | None]:
    """Return the reading of a record; one without budgets, and why, where those of the device do not apply to it."""
    try:
        return read(record, catalogue), None
    except ResultsError as error:
        return read(record), str(error)
