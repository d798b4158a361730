"""The records of every machine, as the page offers them that compares any two."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_bench.analysis.compare.noise import stored_noise
from prism_bench.record.store import History
from prism_bench.record.store.points import Facts, utc
from prism_bench.report.machine import backend_name
from prism_bench.report.site.newest import NewestRecord
from prism_bench.report.site.places import Places
from prism_bench.report.site.series_data import Data, nights_data, noise_data
from prism_bench.report.site.sides import side_name


@dataclass(frozen=True)
class RecordList:
    """The records of one machine, backend and environment, whose pages are at `place`, oldest first.

    There are `count` of them. `nights` are the files that list them, `noise` the one with its noise floor; `sides`
    names each record's side and the file that it is made of.
    """

    machine: str
    backend: str
    place: str
    count: int
    nights: Sequence[Data]
    noise: Data | None
    sides: Sequence[tuple[str, Path]]

    @property
    def data(self) -> Iterator[Data]:
        """Yield the files of the list, without the sides."""
        yield from self.nights
        yield from filter(None, [self.noise])

    def plain(self, up: str) -> dict[str, object]:
        """Return the list as a page names it from which `up` leads to the site's first folder."""
        return {"machine": self.machine, "backend": self.backend, "place": up + self.place,
                "records": self.count,
                "nights": [[one.first, one.name] for one in self.nights],
                "noise": self.noise.name if self.noise else None}  # fmt: skip


def record_lists(nights: Mapping[str, NewestRecord], history: History, places: Places) -> list[RecordList]:
    """Return the list for each newest run, by the place of its pages."""
    return [_record_list(place, one, history, places) for place, one in nights.items()]


def _record_list(place: str, one: NewestRecord, history: History, places: Places) -> RecordList:
    own = history.of(one.record.owner).records
    paths = [_path(facts, one, places) for facts in own]
    names = [side_name(path) for path in paths]
    sides = {name: path for name, path in zip(names, paths, strict=True) if name}
    noise = stored_noise(one.machine, places.noise)
    return RecordList(one.machine, backend_name(one.record), place, len(own), nights_data(own, names),
                 noise_data(noise) if noise else None, list(sides.items()))  # fmt: skip


def _path(facts: Facts, one: NewestRecord, places: Places) -> Path:
    """Return the record's path; one that was named on the command line may be anywhere."""
    newest = (utc(one.record.created), one.record.commit) == (facts.created, facts.commit)
    return one.path if newest else places.runs / facts.file
