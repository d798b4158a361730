"""Two builds measured in turn, so that drift of the machine meets both alike."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from prism_bench.analysis.compare.comparison import by_name, by_workload, compare, undecided
from prism_bench.analysis.compare.noise import stored_noise
from prism_bench.analysis.compare.verdict import VerdictRules
from prism_bench.io.saving import Saver
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.run import Progress, Settings
from prism_bench.run.interleave import DEVICE_METRICS, Build, Growth, interleaved, pair_settings
from prism_bench.workflows.tuning.applied import Applied

Records = tuple[RunRecord, RunRecord]


@dataclass(frozen=True)
class PairEffort:
    """How two builds are measured: the backend, processes a side, a limit in seconds, and a folder for the records.

    With `tuned`, launches follow this machine's choices. The cases `trusted` are not verified: their machine code,
    launches and inputs are those of the other side. Only these `metrics` are measured.
    """

    backend: str
    processes: int
    limit: float | None = None
    keep: Path | None = None
    tuned: bool = False
    trusted: tuple[str, ...] = ()
    metrics: tuple[str, ...] = DEVICE_METRICS


def measure_pair(
    builds: tuple[Build, Build], chosen: tuple[Applied, Applied], effort: PairEffort,
    report: Callable[[Progress], None], growth: Growth | None = None,
) -> tuple[Records, Saver[Records, object]]:  # fmt: skip
    """Measure both builds as `chosen` launches them; return the records and what saved them after every pair.

    With `growth`, undecided cases are measured in more processes.
    """
    first, second = (replace(build, cases=one.cases) for build, one in zip(builds, chosen, strict=True))
    settings, keep = pair_settings(Settings(processes=effort.processes), effort.metrics), record_saver(effort)

    def named(records: Records) -> Records:
        a, b = (replace(record, tuning=dict(one.facts)) for record, one in zip(records, chosen, strict=True))
        return a, b

    records = interleaved(
        (first, second), effort.backend, settings, report, limit=effort.limit,
        keep=lambda records: keep(named(records)), growth=growth, trusted=effort.trusted,
    )  # fmt: skip
    keep.finish(named(records))
    return named(records), keep


def record_saver(effort: PairEffort) -> Saver[Records, object]:
    """Return what saves the records of both sides in the folder of the effort, if there is one."""
    places = [store.RecordPlace(effort.keep, effort.keep / f"{side}.json.gz") for side in "ab"] if effort.keep else []

    def write(records: Records) -> list[Path]:
        return [place.save(record) for place, record in zip(places, records, strict=False)]

    return Saver(write)


@dataclass(frozen=True)
class PairJudge:
    """What decides on a board of a fleet whether a case needs more processes: the command's rules, on a job's cases.

    `noise` is the folder of noise floors, `across` what the sides differ in, `changed` the cases of other code.
    """

    noise: str
    rules: VerdictRules
    across: str
    metric: str | None = None
    changed: tuple[str, ...] = ()

    def undecided(self, records: Records) -> tuple[Collection[str], Collection[str]]:
        """Return the names of the cases of either side that more processes may decide."""
        a, b = records
        key = by_workload if self.across == "variants" else by_name
        floors = stored_noise(b.machine["id"], Path(self.noise))
        found = compare(a, b, floors, self.rules, metric=self.metric, key=key, changed=self.changed)
        return undecided(found, records, key)
