"""Every case as the newest record that holds it shows it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_bench.analysis.reading import Reading, read
from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.io.files import path_part
from prism_bench.record import store
from prism_bench.record.raw_source import is_present
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts
from prism_bench.record.store.records import in_order
from prism_bench.report.site.places import Places
from prism_bench.report.terminal.case_table import Line, lines

_AT_ONCE = 64  # records that are searched together for the newest times of cases


# What records other than the newest run are called, by origin.
ORIGINS = {"older": "an older record", "round": "a round", "languages": "a record of languages"}


@dataclass(frozen=True, eq=False)
class ShownCase:
    """A case with its row of the summary, its line of the table, and the reading that they are of.

    `origin` is `newest` for the newest run, `older` for a run before that left fewer cases out. Where no run has timed
    it, it is `round` for a round of making kernels faster, in one process, or `languages` for a record of languages.
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
    for row, line in zip(reading.rows, lines(reading), strict=True):
        if wanted is None or line.case.name in wanted:
            yield ShownCase(line.case, row, line, reading, origin)


def newest_cases(
    reading: Reading, own: Sequence[Facts], history: History, places: Places, catalogue: Catalogue | None
) -> dict[str, ShownCase]:
    """Return by name the newest run's cases, then those of the catalogue that something older timed last.

    That is an older run, else a round of making kernels faster or a record of languages.
    """
    found = {one.case.name: one for one in cases_of(reading, "newest")}
    known = {case.name for case in catalogue.cases()} if catalogue else set()
    for facts, names in newest_with(history, own, known - set(found)):
        older = _read(places.runs / facts.file, catalogue)
        found |= {one.case.name: one for one in cases_of(older, "older", names)} if older else {}
    for path, origin in _beside_runs(places, str(reading.record.machine["id"])):
        missing = known - set(found)
        made = _read(path, catalogue) if missing else None
        if made and made.record.backend == reading.record.backend:
            found |= {one.case.name: one for one in cases_of(made, origin, missing)}
    return found


def _beside_runs(places: Places, machine: str) -> list[tuple[Path, str]]:
    """Return the records of the machine that are no runs of the trend, with their origin, the newest first."""
    folders = ((places.rounds, "round"), (places.languages, "languages"))
    found = [(path, origin) for folder, origin in folders for path in store.records_in(folder)
             if path.parent.name == path_part(machine)]  # fmt: skip
    return sorted(found, key=lambda one: in_order(one[0]), reverse=True)


def newest_with(history: History, own: Sequence[Facts], wanted: Collection[str]) -> Iterator[tuple[Facts, list[str]]]:
    """Yield each record that holds the newest time of wanted cases, with the names of these cases.

    Only the records `own` are searched.
    """
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
        points = history.part(known).table
        points = points.chosen(points.rows_with({"case": left}))
        newest: dict[str, int] = {}
        for case, number in zip(points.texts("case"), points.columns["record"].tolist(), strict=True):
            newest.setdefault(case, number)  # a table begins with the record at the first place
        for case, number in newest.items():
            cases.setdefault(known[number], []).append(case)
        left -= set(newest)
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
