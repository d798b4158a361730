"""Settings of a run, facts of the machine in its record, and the ceiling benchmarks that it includes."""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from prism_bench.catalogue import Catalogue
from prism_bench.errors import UsageError
from prism_bench.io import project
from prism_bench.io.files import default_folder
from prism_bench.measure import Criterion
from prism_bench.measure.plausibility import is_bandwidth, measured_limits, peaks_of
from prism_bench.monitor import Rules
from prism_bench.monitor.sampler import HERTZ
from prism_bench.record import identity
from prism_bench.record.identity import boards_in
from prism_bench.record.measurement import Measurement, merged
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.case import Case
from prism_bench.spec.metric import STAND_INS, is_measured
from prism_bench.spec.peer import PeerFacts

# Settings of a run: everything that a series of results must share to be compared.

_KEPT = ("processes", "seed", "seeds", "criteria")  # in a record
_LATER = (
    "watching",
    "peer_timeout",
    "peer_processes",
    "peer_first_process_only",
    "peer_repeated_within",
    "known_code",
    "controls",
    "control_processes",
    "bitwise",
    "outputs",
)  # than the first version
_TUPLES = ("seeds", "first_process_only", "smallest_only", "peer_first_process_only")
# Of a control, few samples show the median within what processes differ by.
_CONTROL = Criterion(precision=0.004, min_samples=8, max_samples=20, seconds=0.15)
BLAS_THREADS = 1  # of a process that times; a wall time with more would depend on the host's other work
PROTOCOL = 1  # raise it when the same kernel on the same machine would get other times


@dataclass(frozen=True)
class Watching:
    """How the device is watched: `hertz` of the sampler (0: not at all), and the `rules` for its samples.

    `energy` is whether the energy of a launch is measured, for cases of `energy_labels`, or of all without labels: S0
    ends before the counter moves, and S2 would add nothing to S1.
    """

    hertz: float = HERTZ
    rules: Rules = field(default_factory=Rules)
    energy: bool = True
    energy_labels: tuple[str, ...] = ("S1",)


@dataclass(frozen=True)
class Settings:
    """Criteria of metrics, others are not measured; `seeds` of verification; `processes`; `timeout` of a case.

    `peer_timeout` is how many seconds a peer may take for each step (its check, each metric) before its process is
    ended; its set-up, which may compile, may take three times as long. `lanes` processes verify side by side before
    anything is timed; with one, the first measuring process verifies. Metrics of `smallest_only` are the same at every
    size, so S1 and S2 go without, and so do variants, which share their kernel's source. A peer's time, which is shown
    as a ratio of two digits, needs `peer_precision` only, in the first `peer_processes`: two show whether it is
    unstable. Peers are compared by their cold times, so only the first process measures their metrics of
    `peer_first_process_only`, and all of a peer that took more than `peer_repeated_within` times as long as the kernel:
    another process would not change who is faster (None: it is measured again). `known_code` has by case the machine
    code whose first call an earlier record has: that of other code is measured. `known_seconds` has by task what its
    verification took in an earlier run; workers do not get it. `controls` has by case the record that it leans on and
    the digest of its code there (see `controls`); the first `control_processes` measure them, and each its peers. With
    `bitwise`, cases that are right are checked for the same bits, see `run.bitwise`, and so are their peers. In the
    folder `outputs` the first board leaves those of right cases, with which those of other boards are compared.
    """

    processes: int = 3
    lanes: int = 1
    seed: int = 0
    seeds: tuple[int, ...] = (0, 1)
    timeout: float = 180.0
    peer_timeout: float = 60.0
    peers: bool = True
    cpu_baseline: bool = True
    criteria: dict[str, Criterion] = field(
        default_factory=lambda: {
            "cold_time": Criterion(precision=0.004, max_samples=60, seconds=0.35),
            "hot_time": Criterion(precision=0.004, max_samples=24, seconds=0.25),
            "end_to_end_time": Criterion(precision=0.05, min_samples=5, max_samples=8, seconds=0.3),
            "first_call_time": Criterion(min_samples=1, max_samples=1),
            "wall_time": Criterion(precision=0.01, max_samples=24, seconds=0.4),
            "energy": Criterion(precision=0.015, min_samples=7, seconds=2.0),
        }
    )
    first_process_only: tuple[str, ...] = ("first_call_time", "energy")
    smallest_only: tuple[str, ...] = ("first_call_time",)
    peer_precision: float = 0.01
    peer_processes: int = 2
    peer_first_process_only: tuple[str, ...] = ("hot_time",)
    peer_repeated_within: float | None = 2.0
    watching: Watching = field(default_factory=Watching)
    known_code: dict[str, str] = field(default_factory=dict[str, str])
    known_seconds: dict[str, float] = field(default_factory=dict[str, float])
    control_processes: int = 0
    controls: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    bitwise: bool = False
    outputs: str | None = None

    def control_of(self, case: Case, process: int, code: Mapping[str, Any]) -> str | None:
        """Return the name of the record that the case, whose code is this, leans on; None where it is no control."""
        record, digest = self.controls.get(case.name, ("", ""))
        is_control = record and process < self.control_processes and digest == code_digest(code)
        return record if is_control else None

    def of_control(self) -> "Settings":
        """Return the settings for a control, whose cold time is compared with that of a record."""
        return replace(self, criteria={"cold_time": _CONTROL})

    def seeds_of(self, case: Case) -> tuple[int, ...]:
        """Return the seeds to verify the case with: only one at the large sizes, which edges and S0 precede."""
        return self.seeds[:1] if case.label in ("S1", "S2") else self.seeds

    def left_out(self, case: Case, process: int, code: object = None) -> tuple[str, ...]:
        """Return the metrics that this process does not measure of the case, whose machine code is `code`."""
        known = code is not None and code == self.known_code.get(case.name)
        is_other = case.label in ("S1", "S2") or case.variant is not None or known
        return (self.first_process_only if process else ()) + (self.smallest_only if is_other else ())

    def measures_energy(self, case: Case, process: int) -> bool:
        """Return whether this process measures the energy of a launch of the case."""
        labels = self.watching.energy_labels
        is_left_out = "energy" in self.left_out(case, process) or "energy" not in self.criteria
        is_wanted = self.watching.energy and is_measured("energy", case.spec.ceiling)
        return is_wanted and not is_left_out and (not labels or case.label in labels)

    def left_out_of_peers(self, process: int) -> tuple[str, ...]:
        """Return the metrics of peers that this process does not measure."""
        return self.peer_first_process_only if process else ()

    def criterion(self, metric: str, subject: str) -> Criterion:
        """Return when a metric of the kernel, a peer or the CPU has enough samples."""
        chosen = self.criteria[metric]
        if not subject.startswith("peer:"):
            return chosen
        return replace(chosen, precision=max(chosen.precision, self.peer_precision), seconds=chosen.seconds / 2)

    def protocol(self, backend: str = "") -> dict[str, Any]:
        """Return what the run record keeps of the settings, as JSON gives it back; on a CPU the threads of BLAS, too.

        A wall time with other threads is another series.
        """
        plain = {**asdict(self), "seeds": list(self.seeds)}
        plain["criteria"].pop("energy", None)  # it is no time, and every energy has its own interval
        threads = {"blas_threads": BLAS_THREADS} if backend in STAND_INS else {}
        return {"version": PROTOCOL, **{key: plain[key] for key in _KEPT}, **threads}


def code_digest(code: Mapping[str, Any]) -> str | None:
    """Return a digest of the machine code of a case and its launches; None where the machine code is unknown."""
    from prism_bench.analysis.compare.comparable import LAUNCHED  # which no worker needs at its start

    if not code.get("sass"):
        return None
    text = repr([(name, code[name]) for name in LAUNCHED if name in code])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def to_plain(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain values.

    What a worker of an older checkout does not know is included only where it was chosen.
    """
    usual = Settings()
    chosen = {key for key in _LATER if getattr(settings, key) != getattr(usual, key)}
    plain = {key: value for key, value in asdict(settings).items() if key not in _LATER or key in chosen}
    del plain["known_seconds"]
    return plain


def from_plain(plain: dict[str, Any]) -> Settings:
    """Return the settings of `to_plain` after a trip through JSON; unknown fields are skipped."""
    plain = {key: value for key, value in plain.items() if key in Settings.__dataclass_fields__}
    if "watching" in plain:
        watching = plain["watching"]
        labels, rules = tuple(watching["energy_labels"]), Rules(**watching["rules"])
        plain["watching"] = Watching(**{**watching, "energy_labels": labels, "rules": rules})
    criteria = {metric: Criterion(**values) for metric, values in plain["criteria"].items()}
    lists = {key: tuple(plain[key]) for key in _TUPLES if key in plain}
    return Settings(**{**plain, **lists, "criteria": criteria})


# Builder of run records: every kind of run gets machine, software, commit, catalogue and times from here.


_BUILT_IN = "built-in"  # the name of this package's catalogue in records


class RunSpan(NamedTuple):
    """When a run started, the seconds that it has taken, and whether it measured everything it should."""

    started: datetime
    seconds: float
    complete: bool


@dataclass(frozen=True)
class RunClock:
    """The clock of a run, which starts when it is made."""

    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    counter: float = field(default_factory=lambda: time.perf_counter())

    def span(self, complete: bool) -> RunSpan:
        """Return the time from the start until now."""
        return RunSpan(self.started, time.perf_counter() - self.counter, complete)


@dataclass(frozen=True)
class RecordBuilder:
    """Builds the records of a run on one catalogue and backend; `facts` are the backend's facts of the device."""

    catalogue: Catalogue
    backend: str
    facts: Mapping[str, Any]

    def build(
        self,
        span: RunSpan,
        cases: Iterable[CaseResult],
        *,
        protocol: Mapping[str, Any],
        monitor: Iterable[dict[str, Any]] = (),
        spent: Mapping[str, float] | None = None,
    ) -> RunRecord:
        """Return the record of what was measured within `span`."""
        commit, dirty = identity.commit_of(self.catalogue.folder)
        return RunRecord(
            created=identity.timestamp(span.started),
            backend=self.backend,
            machine=identity.machine(self.facts),
            software=identity.software(self.facts.get("software", {})),
            protocol=dict(protocol),
            cases=tuple(cases),
            commit=commit,
            dirty=dirty,
            catalogue=catalogue_name(self.catalogue.folder),
            complete=span.complete,
            duration=round(span.seconds, 1),
            monitor=tuple(monitor),
            spent=dict(spent or {}),
            boards=boards_in(self.facts),
            committed=identity.committed_at(self.catalogue.folder, commit),
        )

    def written_bytes(self, cases: Iterable[CaseResult]) -> dict[str, int]:
        """Return the bytes that each timed case writes, by name."""
        known = {case.name: self.catalogue.anywhere(case.name) for case in cases if case.measurements}
        return {name: sum(case.sizes.nbytes(array.name) for array in case.spec.outputs) for name, case in known.items()}


def catalogue_name(folder: Path) -> str:
    """Return the name of a catalogue in records: `built-in`, or its folder; of a project as it is configured."""
    if folder == default_folder():
        return _BUILT_IN
    configuration = project.current()
    return str(configuration.keys.catalogue if configuration and configuration.has(folder) else folder)


def record_order(case: CaseResult) -> tuple[str, ...]:
    """Return the sort key of a case in a record: family, kernel, variant and label, whatever was measured first."""
    return case.family, case.kernel, case.variant or "", case.label, case.name


def combined(results: Sequence[CaseResult]) -> CaseResult:
    """Return one result of a case: the first process's facts, the samples of all, the status of the first failure.

    It is a control where each process measured it as one.

    A peer without a time in one of the processes has no time; a note shows where its facts differ between processes.
    """
    bad = next((result for result in results if result.status != "ok"), None)
    lost = dict(cell for result in reversed(results) for cell in _without_time(result).items())
    notes = _fact_notes([result.peers for result in results])
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for measurement in (entry for result in results for entry in result.measurements):
        if measurement.subject not in lost:
            groups.setdefault((measurement.metric, measurement.subject), []).append(measurement)
    measurements = [*(merged(parts) for parts in groups.values()), *lost.values()]
    noted = [
        replace(measurement, notes=(*measurement.notes, *notes.get(measurement.subject, ())))
        for measurement in measurements
    ]
    status, reason = (bad.status, bad.reason) if bad else ("ok", None)
    leaning = {result.control for result in results if any(entry.samples for entry in result.measurements)}
    return replace(
        results[0],
        control=leaning.pop() if len(leaning) == 1 else None,
        code=next((result.code for result in results if result.code), {}),
        measurements=() if bad else tuple(noted),
        status=status,
        reason=reason,
        peers=_merged_facts([result.peers for result in results]),
        spent=seconds_of(result.spent for result in results),
    )


def _without_time(result: CaseResult) -> dict[str, Measurement]:
    """Return by subject the empty cell of each peer that has no time in any metric."""
    timed = {measurement.subject for measurement in result.measurements if measurement.samples}
    peers = [
        measurement
        for measurement in result.measurements
        if measurement.subject.startswith("peer:") and measurement.subject not in timed
    ]
    return {measurement.subject: measurement for measurement in reversed(peers)}


def _merged_facts(tables: Sequence[Mapping[str, PeerFacts]]) -> dict[str, PeerFacts]:
    """Return what all processes know of each peer; the first one's word counts where they differ."""
    facts: dict[str, PeerFacts] = {}
    for table in tables:
        for name, known in table.items():
            facts[name] = {**known, **facts.get(name, {})}
    return facts


def _fact_notes(tables: Sequence[Mapping[str, PeerFacts]]) -> dict[str, list[str]]:
    """Return by subject the notes on peers whose launches or version differ between the processes."""
    notes: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for table in tables for name in table):
        for fact in ("launches", "version"):
            known: list[object] = [table.get(name, {}).get(fact) for table in tables]
            values = list(dict.fromkeys(str(value) for value in known if value is not None))
            if len(values) > 1:
                notes.setdefault(f"peer:{name}", []).append(f"its processes differ in {fact}: {' and '.join(values)}")
    return notes


def seconds_of(tables: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sum of tables of seconds by name."""
    total: dict[str, float] = {}
    for table in tables:
        for name, seconds in table.items():
            total[name] = round(total.get(name, 0.0) + seconds, 4)
    return total


# Cases of a run: the part of one GPU, and the ceiling benchmarks, which measure the machine itself.


def share(cases: Sequence[Case], part: str) -> list[Case]:
    """Return the cases of the share that `part` names: "2/4" is the second of four, each for one of several equal GPUs.

    A kernel stays whole, with its variants. The kernels, those with most cases first, then by name, go one by one to
    the share that has the fewest cases so far (Graham 1969), so that the same cases always make the same shares. A
    UsageError has the form of a part, or the number of kernels where there are too few.
    """
    parts = re.fullmatch(r"(\d{1,9})/(\d{1,9})", part)
    number, count = (int(parts[1]), int(parts[2])) if parts else (0, 0)
    if not 1 <= number <= count:
        raise UsageError(f"--part {part}: it is I/N with I from 1 to N, such as 1/4 for the first of four parts")
    sizes = Counter(case.spec.name for case in cases)
    if number > len(sizes):
        raise UsageError(f"--part {part}: no kernel is left for it; {len(sizes)} chosen kernels make as many parts")
    loads, chosen = [0] * min(count, len(sizes)), set[str]()
    for kernel in sorted(sizes, key=lambda name: (-sizes[name], name)):
        lightest = loads.index(min(loads))
        loads[lightest] += sizes[kernel]
        chosen |= {kernel} if lightest == number - 1 else set()
    return [case for case in cases if case.spec.name in chosen]


def with_ceilings(catalogue: Catalogue, backend: str, cases: Iterable[Case]) -> list[Case]:
    """Return every case that a timed run measures, each once: on a device the ceiling benchmarks come first."""
    return list(dict.fromkeys([*(ceiling_cases(catalogue) if backend == "cuda" else ()), *cases]))


def ceiling_cases(catalogue: Catalogue) -> list[Case]:
    """Return the kernels that measure the machine: launch overhead, ceilings, and the proof that caches were cold.

    Each at its smallest and largest workload; those of memory at every one, since which size and pattern is quickest
    differs from device to device. Of other patterns only reads have the smallest: in the cache they too prove it cold.
    """
    ceilings = [case for case in catalogue.cases() if case.spec.ceiling]
    kernels = [case for case in ceilings if not case.variant]
    smallest = {case.kernel: case for case in reversed(kernels)}
    largest = {case.kernel: case for case in kernels}
    of_memory = [
        case
        for case in ceilings
        if is_bandwidth(case.spec.ceiling or "")
        and not (case.variant and case.label == "S0" and case.spec.ceiling != "read_bandwidth")
    ]
    return list(dict.fromkeys([*smallest.values(), *largest.values(), *of_memory]))


def anchor_cases(catalogue: Catalogue, earlier: Iterable[RunRecord]) -> list[Case]:
    """Return those ceiling benchmarks that every board of a fleet measures, so that its own limits are known.

    They are the quickest of each kind in the newest of the `earlier` records of such boards that has the kind, and
    those that prove caches cold. Of a kind that no record has they are all.
    """
    ceilings, chosen = ceiling_cases(catalogue), set[str]()
    kinds = {case.spec.ceiling for case in ceilings}
    for record in earlier:
        quickest = _quickest(record)
        quickest_of_kind = [case for case in ceilings if case.spec.ceiling in kinds and case.name in quickest]
        chosen |= {case.name for case in quickest_of_kind}
        kinds -= {case.spec.ceiling for case in quickest_of_kind}
        if not kinds:
            break
    return [case for case in ceilings if case.name in chosen or case.spec.ceiling in kinds or _proves_cold(case)]


def _proves_cold(case: Case) -> bool:
    return case.label == "S0" and case.spec.ceiling == "read_bandwidth"


def _quickest(record: RunRecord) -> set[str]:
    """Return the names of the cases behind the limits of the board that measured most ceiling benchmarks."""
    measured = [case for case in record.cases if case.ceiling and case.measurements]
    counts = Counter(board for case in measured for board in _boards(record, case))
    on_board = measured
    if counts:
        board = max(counts, key=lambda name: counts[name])
        on_board = [_on_board(case, board) for case in measured if board in _boards(record, case)]
    limits = measured_limits(on_board, record.machine.get("l2_bytes", 0), peaks_of(record.machine))
    return set(limits.sources.values())


def _boards(record: RunRecord, case: CaseResult) -> Sequence[str]:
    """Return the boards that measured the case, each once; empty if they are unknown."""
    several = dict.fromkeys(board for measurement in case.measurements for board in measurement.boards)
    return list(several) or list(filter(None, [record.board_of(case)]))


def _on_board(case: CaseResult, board: str) -> CaseResult:
    """Return the case with the processes that ran on one board."""
    measured: list[Measurement] = []
    for measurement in case.measurements:
        places = [place for place, name in enumerate(measurement.boards) if name == board]
        samples = tuple(measurement.processes[place] for place in places)
        measured.append(replace(measurement, processes=samples) if measurement.boards else measurement)
    return replace(case, board=None, measurements=tuple(measured))
