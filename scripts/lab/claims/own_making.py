"""Making of the claims that a repository publishes: from a record where its code is the catalogue's, else measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.claims.own_files import ListedClaim, listed, stale_files
from lab.claims.own_run import OwnRun
from lab.claims.together import JointRecords, measured_together, with_ceilings_of
from prism_bench.catalogue import Catalogue
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.extensions.claims.document import Claim, encoded
from prism_bench.extensions.claims.making import SideSource, claim_of, of_result
from prism_bench.io.files import write_atomically
from prism_bench.record.run_record import RunRecord


@dataclass
class OwnMaking:
    """Makes what is missing or stale: from `record` first, then by measuring."""

    here: OwnRun
    record: RunRecord | None = None
    _refused: dict[str, str] = field(default_factory=dict[str, str], init=False)  # why the record gives no claim

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue that has the code."""
        return self.here.catalogue

    def make(self) -> Iterator[str]:
        """Yield what became of each claim of the list."""
        wanted: list[ListedClaim] = []
        for one in listed(self.here.folder):
            if self._path(one).is_file() and not stale_files(self._path(one), self.catalogue):
                yield f"{self._path(one)}: kept"
            elif self.record is None or (claim := self._recorded(one, self.record)) is None:
                wanted.append(one)
            else:
                yield self._written(one, claim)
        yield from self._measured(wanted)

    def _path(self, one: ListedClaim) -> Path:
        return self.here.folder / self.here.machine / f"{one.name}.json"

    def _recorded(self, one: ListedClaim, record: RunRecord) -> Claim | None:
        """Return the claim that the record makes; None where it makes none."""
        try:
            result = record.case(one.sides(self.catalogue).kernel.name)
            if result is None:
                raise ResultsError("the record has no such case")
            return of_result(record, result, self.catalogue, against=one.baseline or one.against)
        except PrismBenchError as error:
            self._refused[one.name] = str(error)
            return None

    def _measured(self, wanted: Sequence[ListedClaim]) -> Iterator[str]:
        measurement = self.here.measurement
        for group in ([one for one in wanted if not one.baseline], [one for one in wanted if one.baseline]):
            if group and self.here.left > 0:
                records = measured_together(self.catalogue, [one.sides(self.catalogue) for one in group], measurement)
                measurement = with_ceilings_of(measurement, records)
                yield from (self._written(one, self._claimed(one, records)) for one in group)
            else:
                yield from (f"{self._path(one)}: left for the next call" for one in group)

    def _claimed(self, one: ListedClaim, records: JointRecords) -> Claim | PrismBenchError:
        sides = one.sides(self.catalogue)
        try:
            if sides.baseline is None:
                result = records.builds[1].case(sides.kernel.name)
                if result is None:
                    raise ResultsError(f"{sides.kernel.name} has no result")
                return of_result(records.builds[1], result, self.catalogue, against=one.against)
            sources = [SideSource(case, self.catalogue.folder) for case in (sides.kernel, sides.baseline)]
            return claim_of(records.contest(sides, _metric(records, sides.kernel.name)), sources)
        except PrismBenchError as error:
            return error

    def _written(self, one: ListedClaim, claim: Claim | PrismBenchError) -> str:
        path, why = self._path(one), self._refused.get(one.name)
        if isinstance(claim, PrismBenchError):
            return f"{path}: not made: {claim}"
        write_atomically(path, encoded(claim))
        return f"{path}: {claim.sentence}{f' (measured now, for the record: {why})' if why else ''}"


def _metric(records: JointRecords, name: str) -> str:
    found = records.builds[1].case(name)
    return found.main_metric if found else "cold_time"
