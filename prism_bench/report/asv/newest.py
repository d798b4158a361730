"""The newest record of each machine, read and judged; one that cannot be read harms no other."""

from dataclasses import dataclass
from pathlib import Path

from prism_bench.analysis.reading import Reading, read
from prism_bench.catalogue import Catalogue, of_project
from prism_bench.errors import ResultsError
from prism_bench.record import store


@dataclass(frozen=True)
class NewestReading:
    """What is known of one `machine`: the `reading` of its newest readable record, and why others were passed by."""

    machine: str
    reading: Reading | None
    passed_by: tuple[str, ...] = ()


def newest_by_machine(runs: Path) -> list[NewestReading]:
    """Return a reading for each folder of records below `runs`, by name.

    Budgets are those of the configured catalogue, else of the one next to the package.
    A ResultsError where a device's budgets are not right, or not for its records.
    """
    catalogue = of_project()
    machines = sorted({path.parent for path in store.records_in(runs)})
    return [_newest(folder, catalogue) for folder in machines]


def _newest(folder: Path, catalogue: Catalogue | None) -> NewestReading:
    passed_by = []
    for path in reversed([one for one in store.records_in(folder.parent) if one.parent == folder]):
        try:
            record = store.read(path)
        except ResultsError as error:
            passed_by.append(f"{path.name}: {str(error).removeprefix(f'{path}: ')}")
        else:
            return NewestReading(folder.name, read(record, catalogue), tuple(passed_by))
    return NewestReading(folder.name, None, tuple(passed_by))
