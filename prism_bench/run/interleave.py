"""Two builds measured in one run, their processes in turn (A B, B A, A B, ...), so that drift affects both alike."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial

from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable
from prism_bench.io import interrupts
from prism_bench.io.workers.handle import WorkerEnvironment
from prism_bench.record.run_record import RunRecord
from prism_bench.run.catalogue_run import Run
from prism_bench.run.driver import Progress, rounds
from prism_bench.run.measuring import lacks_memory
from prism_bench.run.places import HERE, timing
from prism_bench.run.record_builder import RunClock
from prism_bench.run.settings import Settings
from prism_bench.run.standby import Standby
from prism_bench.run.stopwatch import TIMED, UNTIMED
from prism_bench.spec.case import Case

AT_ONCE = 3  # workers a side that are started together: each holds CuPy and the catalogue
_STANDBY = "prism_bench/run/standby.py"  # of a checkout whose workers can be started before they have an order
MAIN_METRICS = ("cold_time", "wall_time")  # of which a case has one: on a device, or on a CPU
DEVICE_METRICS = (*MAIN_METRICS, "hot_time")


@dataclass(frozen=True)
class Build:
    """One side: its `name`, the `catalogue` of its `cases`, and the `place` where its workers run."""

    name: str
    catalogue: Catalogue
    cases: tuple[Case, ...]
    place: WorkerEnvironment = HERE


def pair_settings(settings: Settings, metrics: Sequence[str] = DEVICE_METRICS) -> Settings:
    """Return the settings for timing kernels alone: no peers, no CPU, and these metrics only.

    Processes that measure are numbered from 1, so a metric of the first process only is not measured at all.
    """
    others = tuple(metric for metric in settings.criteria if metric not in metrics)
    return replace(settings, peers=False, cpu_baseline=False, first_process_only=others)


@dataclass(frozen=True)
class Growth:
    """Plan for adding pairs of processes.

    After as many pairs as each of `looks`, `undecided` names the cases of either side that are measured until the next.
    """

    looks: tuple[int, ...]
    undecided: Callable[[tuple[RunRecord, RunRecord]], tuple[Collection[str], Collection[str]]]


class _PairSide:
    """A build with its run, and the cases that are still measured; those of the names `trusted` are not verified."""

    def __init__(
        self, build: Build, backend: str, settings: Settings, report: Callable[[Progress], object], *,
        trusted: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.build, self._backend = build, backend
        self.left = list(build.cases)
        self.verified = [case for case in build.cases if case.name not in trusted]
        self.run = Run(build.catalogue, backend, settings, report, build.place)

    def turn(self, process: int) -> None:
        """Time the cases that are left in one process."""
        with self.run.stage(TIMED):
            self.run.go_through(self.left, process)

    def verifying(self) -> AbstractContextManager[None]:
        """Return a block in which the process that verifies works already."""
        return self.run.verifying(self.verified)

    def verify(self) -> None:
        """Send the cases that are verified through a process."""
        with self.run.stage(UNTIMED):
            self.run.go_through(self.verified, 0, timed=False)

    def verify_lacking(self) -> None:
        """Verify those again alone for which there was too little memory next to the other side."""
        self.verified = [case for case in self.verified if self._lacked_memory(case.name)]
        for case in self.verified:
            self.run.results.pop(case.name)
        if self.verified:
            self.verify()

    def _lacked_memory(self, name: str) -> bool:
        results = self.run.results.get(name, ())
        return any(one.status == "skipped" and lacks_memory(one.reason or "") for one in results)

    def standby(self, processes: int) -> Standby:
        """Return that many workers, which import and read the catalogue; none for a checkout that has none."""
        place = self.build.place
        known = place.root is None or (place.root / _STANDBY).is_file()
        libraries = ["cupy"] if self._backend == "cuda" else []
        return Standby(
            [libraries] * processes if known and self.left else [], timing(place), self.build.catalogue.folder
        )

    def narrow(self, names: Collection[str]) -> None:
        """Keep only the cases of those names and the ceiling benchmarks; without names nothing is left."""
        self.left = [case for case in self.left if case.name in names or case.spec.ceiling] if names else []


_Sides = tuple[_PairSide, _PairSide]


def interleaved(
    builds: tuple[Build, Build], backend: str, settings: Settings,
    report: Callable[[Progress], object] = lambda _: None, *, verified: bool = True, limit: float | None = None,
    keep: Callable[[tuple[RunRecord, RunRecord]], object] = tuple, growth: Growth | None = None,
    trusted: Collection[str] = (),
) -> tuple[RunRecord, RunRecord]:  # fmt: skip
    """Measure two builds in turn; return their records.

    Both are verified (unless `verified` is False) at the same time, but for the cases `trusted`, then timed in
    `settings.processes` each, and with `growth` its undecided cases in more. No pair of processes starts that would not
    end within `limit` seconds if it took as long as the last one. Ctrl-C ends both and marks the records incomplete.
    `keep` gets such records after each pair, in case the machine itself is lost.
    """
    looks = growth.looks if growth else (settings.processes,)
    count = _PairCount(report, looks[0])
    sides = _sides(builds, backend, settings, count, trusted)
    count.total = sum(len(side.left) * count.pairs + len(side.verified) * verified for side in sides)
    clock, complete = RunClock(), True

    def records(complete: bool) -> tuple[RunRecord, RunRecord]:
        span = clock.span(complete)
        return sides[0].run.record(span), sides[1].run.record(span)

    end = None if limit is None else clock.counter + limit
    try:
        with interrupts.allowed(), ExitStack() as stack:
            ready = _ready(sides, stack, count.pairs, partial(_verify, sides) if verified else None)
            for number in rounds(sides, range(1, looks[-1] + 1), _PairSide.turn, end):
                keep(records(complete=False))
                if growth and not _goes_on(sides, number, growth, lambda: records(complete=True), count=count):
                    break
                if number == ready < count.pairs:
                    ready += _ready(sides, stack, count.pairs - number)
    except KeyboardInterrupt:
        complete = False
    except BackendUnavailable:
        if not all(side.run.has_results for side in sides):
            raise
        complete = False
    return records(complete)


def _sides(
    builds: tuple[Build, Build], backend: str, settings: Settings, count: "_PairCount", trusted: Collection[str]
) -> _Sides:
    a, b = (_with_launch_benchmark(build, backend) for build in builds)
    for build in (a, b):
        if not build.cases:
            build.catalogue.refuse_nothing("compare")
    first, second = (
        _PairSide(one, backend, settings, partial(count.take, one.name), trusted=trusted) for one in (a, b)
    )
    return first, second


def parts_of(seconds: float, records: tuple[RunRecord, RunRecord]) -> dict[str, float]:
    """Return how the seconds of a measured pair divide: verifying, timing, and starts of processes with the rest."""
    verifying, timing = (sum(one.spent.get(stage, 0.0) for one in records) for stage in (UNTIMED, TIMED))
    return {"verifying": verifying, "timing": timing, "starting": max(0.0, seconds - verifying - timing)}


def _ready(sides: _Sides, stack: ExitStack, processes: int, meanwhile: Callable[[], object] | None = None) -> int:
    """Give each side that many workers, AT_ONCE at most, and return how many.

    All have started when this returns, so that nothing starts while another times. `meanwhile` runs while they start.
    """
    processes = min(processes, AT_ONCE)
    started = [stack.enter_context(side.standby(processes)) for side in sides]
    if meanwhile:
        meanwhile()
    for side, workers in zip(sides, started, strict=True):
        workers.settle()
        side.run.standby = workers
    return processes


def _verify(sides: _Sides) -> None:
    """Verify both sides at the same time, since nothing is timed."""
    with sides[1].verifying():
        for side in sides:
            side.verify()
    for side in sides:
        side.verify_lacking()


def _with_launch_benchmark(build: Build, backend: str) -> Build:
    """Return the build with the empty kernel on a device, since times below the launch overhead are rejected.

    On NumPy variants are left out: their reference is their kernel's.
    """
    if backend == "numpy_reference":
        return replace(build, cases=tuple(case for case in build.cases if not case.variant))
    if backend != "cuda" or not build.cases:
        return build
    empty = [case for case in build.catalogue.cases(labels=("S0",)) if case.spec.ceiling == "launch"]
    return replace(build, cases=tuple(dict.fromkeys([*empty[:1], *build.cases])))


def _goes_on(
    sides: _Sides, number: int, growth: Growth, records: Callable[[], tuple[RunRecord, RunRecord]], *,
    count: "_PairCount",
) -> bool:  # fmt: skip
    """Return whether anything is left to measure after that pair; at a look the undecided cases alone are left."""
    if number not in growth.looks[:-1]:
        return True
    for side, names in zip(sides, growth.undecided(records()), strict=True):
        side.narrow(names)
    if not any(side.left for side in sides):
        return False
    count.add(sides, min(look for look in growth.looks if look > number) - number)
    return True


class _PairCount:
    """The progress of both sides together: tasks done of `total`, in so many `pairs` of processes until now."""

    def __init__(self, report: Callable[[Progress], object], pairs: int) -> None:
        self._report, self._done, self.total, self.pairs = report, 0, 0, pairs

    def add(self, sides: _Sides, pairs: int) -> None:
        """Count what is left of the sides in that many pairs more."""
        self.total += sum(len(side.left) for side in sides) * pairs
        self.pairs += pairs

    def take(self, side: str, event: Progress) -> None:
        """Report the event of that side with the count of both."""
        stage = f"pair {event.process} of {self.pairs}" if event.process else "verifying"
        done = min(self._done, self.total)
        self._report(Progress(event.process, done, self.total, f"{side}: {event.task}", stage))
        self._done += 1
