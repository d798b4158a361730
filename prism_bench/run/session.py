"""What one measuring process does with one case."""

from collections.abc import Callable

from prism_bench.backends import Backend
from prism_bench.case import Case
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, CacheUnavailable, PrismBenchError, described
from prism_bench.monitor import Blind, Sampler
from prism_bench.run.measuring import (
    OUT_OF_MEMORY,
    is_sticky,
    lacks_memory,
    measure_cpu,
    measure_kernel,
    measure_peers,
    refused_peers,
)
from prism_bench.run.settings import Settings
from prism_bench.run.timed_launches import TimedLaunches, TimedLaunchWrong
from prism_bench.run.verification import complaint, passed, verify, verify_prepared
from prism_bench.run.watcher import Witness
from prism_bench.run_record import CaseResult


class Session:
    """One process of a run: a backend that stays open, a witness that remembers the fastest clock."""

    def __init__(
        self, backend: Backend, catalogue: Catalogue, settings: Settings, process: int, timed: bool = True,
        *, verifies: bool | None = None, sampler: Sampler | Blind | None = None,
    ):  # fmt: skip
        """Process 0 `verifies`, every other one does not, unless that is said otherwise."""
        self._verifies = process == 0 if verifies is None else verifies
        self.begun: Callable[[str], None] = lambda name: None  # is told each edge's name before it is verified
        self._backend, self._catalogue, self._settings = backend, catalogue, settings
        self._process, self._timed = process, timed
        self.looking = 0.0  # seconds that went into looking at timed launches
        self._witness = Witness(sampler or Blind(), settings.watching.rules)

    def task(self, name: str) -> list[CaseResult]:
        """A case by its name, or `edges:<kernel>`: every edge and golden case of that kernel or variant."""
        if name.startswith("edges:"):
            return [self.edge(case) for case in self._catalogue.edges_of(name.removeprefix("edges:"))]
        return [self.case(self._catalogue.anywhere(name))]

    def edge(self, case: Case) -> CaseResult:
        """The edge, verified."""
        self.begun(case.name)
        return self._guarded(case, lambda: self._judged(case, self._in_every_way(case)))

    def _in_every_way(self, case):
        """Entries of all passes; the first one with every seed, the others with one. A regime has one pass and one
        seed: what it may upset is what is computed, not in which order.
        """
        entries, seeds, passes = [], self._settings.seeds, self._backend.passes()
        if case.is_regime:
            seeds, passes = seeds[:1], dict(list(passes.items())[:1])
        for name, backend in passes.items():
            entries += [entry | {"pass": name} for entry in verify(backend, case, seeds)]
            seeds = seeds[:1]
        return entries

    def case(self, case: Case) -> CaseResult:
        """The case, verified in the first process and timed in each, if it is right."""
        return self._guarded(case, lambda: self._measured(case))

    def _guarded(self, case, work):
        """The result of `work`, or one that says how it failed; what makes the device useless ends the process."""
        try:
            return work()
        except MemoryError as error:
            return result_of(case, "skipped", f"{case.name}: {OUT_OF_MEMORY}: {error}")
        except (BackendUnavailable, CacheUnavailable) as error:
            return result_of(case, "skipped", str(error))
        except PrismBenchError as error:
            return result_of(case, "failed", str(error))
        except Exception as error:  # a spec's own functions may raise anything
            if is_sticky(self._backend, error):
                raise
            if lacks_memory(str(error)):
                return result_of(case, "skipped", f"{case.name}: {OUT_OF_MEMORY}: {error}")
            return result_of(case, "failed", f"{case.name}: {described(error)}")

    def _measured(self, case):
        with self._backend.prepare(case, case.inputs(self._settings.seeds[0])) as runnable:
            return self._on(runnable)

    def _on(self, runnable):
        seeds = self._settings.seeds_of(runnable.case)
        entries = verify_prepared(self._backend, runnable, seeds) if self._verifies else []
        if not passed(entries):
            return self._judged(runnable.case, entries)
        try:
            measurements = self._measure(runnable) if self._timed else self._refused(runnable)
        except TimedLaunchWrong as wrong:
            return self._judged(runnable.case, [*entries, wrong.entry])
        return result_of(runnable.case, "ok", None, entries, measurements, code=runnable.evidence())

    def _measure(self, runnable):
        launches = self._launches(runnable)
        try:
            measurements = measure_kernel(runnable, self._settings, self._witness, self._process, launches)
        finally:
            self.looking += launches.seconds
        measurements += measure_peers(self._backend, runnable, self._settings, self._witness, check=self._verifies)
        on_cpu = self._process == 0 and self._backend.name == "cuda"
        return measurements + (measure_cpu(runnable, self._settings) if on_cpu else [])

    def _launches(self, runnable):
        """The launches that will be timed; another process verified them where this one does not."""
        seeds = self._settings.seeds_of(runnable.case)
        if self._verifies:
            return TimedLaunches(self._backend, runnable, seeds[-1])
        runnable()
        launches = TimedLaunches(self._backend, runnable, seeds[0])
        launches.require_right()
        return launches

    def _refused(self, runnable):
        """Where the times come later: the peers that will have none, with the reason."""
        return refused_peers(self._backend, runnable, self._settings) if self._verifies else []

    def _judged(self, case, entries):
        if passed(entries):
            return result_of(case, "ok", None, entries)
        return result_of(case, "wrong", complaint(case, self._backend.name, entries), entries)


def result_of(case, status, reason, entries=(), measurements=(), *, code=None) -> CaseResult:
    """The case's facts with how it ended."""
    return CaseResult(
        name=case.name,
        kernel=case.spec.name,
        family=case.spec.family,
        label=case.label,
        workload=dict(case.workload),
        bytes=case.sizes.bytes_moved,
        flops=case.sizes.flops,
        status=status,
        variant=case.variant,
        ceiling=case.spec.ceiling,
        arithmetic=case.spec.arithmetic,
        reason=reason,
        code=code or {},
        verification=tuple(entries),
        measurements=tuple(measurements),
        configuration=case.configuration,
    )
