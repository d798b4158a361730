"""Every case as the newest record that holds it tells it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prism_bench import store
from prism_bench.analysis.reading import Reading, read
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.report.case_table import Line, lines
from prism_bench.report.site.places import Places
from prism_bench.run_record import CaseResult, RunRecord
from prism_bench.store import History
from prism_bench.store.points import Facts


@dataclass(frozen=True, eq=False)
class Told:
    """A case with its row of the summary, its line of the table, and the reading that they are of.

    `current` is whether that is the newest night, and not an older one because the newest left the case out.
    """

    case: CaseResult
    row: Mapping[str, object]
    line: Line
    reading: Reading
    current: bool

    @property
    def created(self) -> str:
        return self.reading.record.created

    @property
    def implementation(self) -> str:
        return self.row["implementation"]


def told_by(reading: Reading, current: bool, wanted: Sequence[str] | None = None) -> Iterator[Told]:
    """The cases of a reading, only the `wanted` ones if there are any named."""
    rows = reading.frame.to_dict("records")
    for row, line in zip(rows, lines(reading), strict=True):
        if wanted is None or line.case.name in wanted:
            yield Told(line.case, row, line, reading, current)


def all_told(reading: Reading, own: Sequence[Facts], history: History, places: Places, catalogue: Catalogue | None):
    """By name: the newest night's cases, then those of the catalogue that an older record of `own` timed last."""
    found = {one.case.name: one for one in told_by(reading, current=True)}
    known = {case.name for case in catalogue.cases()} if catalogue else set()
    for facts, names in _elsewhere(history, own, known - set(found)):
        older = _read(places.runs / facts.file, catalogue)
        found |= {one.case.name: one for one in told_by(older, False, names)} if older else {}
    return found


def _elsewhere(history, own, wanted) -> Iterator[tuple[Facts, list[str]]]:
    """For each record that holds the newest time of a wanted case, which ones."""
    mine = {history.records.index(facts) for facts in own}
    points = history.points[["case", "record"]]
    points = points[points["case"].isin(wanted) & points["record"].isin(mine)]
    newest = points.groupby("case", observed=True)["record"].max()
    for place, names in newest.groupby(newest).groups.items():
        yield history.records[place], list(names)


def _read(path, catalogue):
    """The reading of an older record; None where it is gone."""
    return judged(store.read(path), catalogue)[0] if path.is_file() else None


def judged(record: RunRecord, catalogue: Catalogue | None) -> tuple[Reading, str | None]:
    """The reading of a record; one without budgets, and why, where those of the device cannot be asked of it."""
    try:
        return read(record, catalogue), None
    except ResultsError as error:
        return read(record), str(error)
