"""Session of one measuring worker: verifies and times the cases that it gets."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from prism_bench.backends import Backend, Runnable
from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, CacheUnavailable, PrismBenchError, described
from prism_bench.monitor import Blind, Sampler
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.record.schema import JsonTable, Status
from prism_bench.run.bitwise import BitChecks, peer_checks
from prism_bench.run.measuring import (
    CPU,
    KERNEL,
    OUT_OF_MEMORY,
    VERIFYING,
    DeviceWatcher,
    TimedLaunches,
    TimedLaunchWrong,
    is_sticky,
    lacks_memory,
    measure_cpu,
    measure_runnable,
    phase,
    running,
)
from prism_bench.run.peers import CasePeers, PeerResults, PeerSpoiled
from prism_bench.run.settings import Settings
from prism_bench.run.verification import Entry, KnownReference, complaint, passed, verify, verify_prepared
from prism_bench.spec.case import Case


class MeasuringSession:
    """One process of a run: its backend stays open, and its device watcher remembers the fastest clock."""

    def __init__(
        self,
        backend: Backend,
        catalogue: Catalogue,
        settings: Settings,
        process: int,
        timed: bool = True,
        *,
        verifies: bool | None = None,
        sampler: Sampler | Blind | None = None,
    ) -> None:
        """Without `verifies`, only process 0 verifies."""
        self._verifies = process == 0 if verifies is None else verifies
        self.begun: Callable[[str], None] = lambda name: None  # gets each edge's name before it is verified
        self.peer_begun: Callable[[str], None] = lambda name: None  # see `peers.CasePeers.begun`
        self.avoided: Mapping[str, Mapping[str, str]] = {}  # by task, peers that have no time, and why
        self.check_compiled: Collection[str] | None = None  # labels; see `pool.MeasuringOrder`
        self.settled: Mapping[str, Collection[str]] = {}  # by task, peers that are not measured again
        self.peerless: Collection[str] = ()  # tasks whose peers are not measured
        self._backend, self._catalogue, self._settings = backend, catalogue, settings
        self._process, self._timed = process, timed
        self.looking = 0.0  # seconds spent on verifying timed launches
        self._watcher = DeviceWatcher(sampler or Blind(), settings.watching.rules)

    def task(self, name: str) -> list[CaseResult]:
        """Verify and time a case by its name; `edges:<kernel>` is every edge and golden case of a kernel or variant."""
        if name.startswith("edges:"):
            return self._edges(self._catalogue.edges_of(name.removeprefix("edges:")))
        return [self.case(self._catalogue.anywhere(name))]

    def _edges(self, cases: Sequence[Case]) -> list[CaseResult]:
        """Verify edges; skip regimes of a kernel that failed before: its process might end, and the reason be lost."""
        results: list[CaseResult] = []
        for case in cases:
            failed = next((result for result in results if result.status == "failed"), None) if case.is_regime else None
            reason = f"{case.name}: not run, since {failed.name} failed" if failed else ""
            results.append(result_of(case, "skipped", reason) if failed else self.edge(case))
        return results

    def case(self, case: Case) -> CaseResult:
        """Verify the case in the first process, and time it in each, if it is right."""
        with running(self._timed) as stopwatch:
            try:
                result = self._measured(case)
            except Exception as error:
                result = self._failure(case, error)
            return replace(result, spent=stopwatch.seconds())

    def _measured(self, case: Case) -> CaseResult:
        settings, known = self._settings, KnownReference()
        measurements: list[Measurement] = []
        control: str | None = None
        unseen: str | None = None
        with self._backend.prepare(case, case.inputs(settings.seeds[0])) as runnable:
            with phase(VERIFYING):
                seeds = settings.seeds_of(case)
                entries = verify_prepared(self._backend, runnable, seeds, known) if self._verifies else []
                strict = self._backend.strict(case) if passed(entries) and self._is_unwatched(case) else None
                if strict:
                    with strict.prepare(case, known.inputs(case, seeds[0])) as watched:
                        watched()
                        unseen = watched.unseen()
            if (settings.bitwise or settings.outputs) and passed(entries):
                entries = self._with_bits(runnable, entries)
            if not passed(entries):
                return self._judged(case, entries)
            if self._timed:
                launches = None
                try:
                    with phase(VERIFYING):
                        launches = self._launches(runnable)
                    with phase(KERNEL):
                        is_known = case.name in settings.known_code or case.name in settings.controls
                        code = runnable.evidence() if is_known else {}
                        control = settings.control_of(case, self._process, code)
                        measurements += self._kernel(runnable, launches, code.get("sass"), is_control=bool(control))
                except TimedLaunchWrong as wrong:
                    return self._judged(case, [*entries, wrong.entry])
                finally:
                    self.looking += launches.seconds if launches else 0.0
            peers = self._peers(runnable, known) if control is None else PeerResults()
            measurements += peers.measurements
            if self._timed and self._process == 0 and self._backend.name == "cuda" and control is None:
                with phase(CPU):
                    measurements += measure_cpu(runnable, settings)
            result = result_of(case, "ok", unseen, entries, measurements, code=runnable.evidence())
            return replace(result, peers=peers.facts, control=control)

    def _kernel(
        self, runnable: Runnable, launches: TimedLaunches, code: str | None, *, is_control: bool
    ) -> list[Measurement]:
        """Return the times of the kernel; of a control only its cold time, but of a ceiling benchmark all of them."""
        case, settings = runnable.case, self._settings
        if is_control and not case.spec.ceiling:
            return measure_runnable(runnable, "kernel", settings.of_control(), self._watcher, launches=launches)
        return measure_runnable(
            runnable,
            "kernel",
            settings,
            self._watcher,
            skipped=settings.left_out(case, self._process, code),
            energy=settings.measures_energy(case, self._process) and not is_control,
            launches=launches,
        )

    def _with_bits(self, runnable: Runnable, entries: Sequence[Entry]) -> list[Entry]:
        """Return the entries of a right case with all checks of its bits and of its peers'."""
        seed, known = self._settings.seeds_of(runnable.case)[-1], [entry for entry in entries if "check" in entry]
        bits, checks = [entry for entry in entries if entry not in known], BitChecks(self._backend, runnable, seed)
        bits += checks.every(known) if self._settings.bitwise else known
        if self._settings.outputs:
            board = str(self._backend.facts().get("uuid") or self._backend.facts()["device"])
            bits += checks.on_boards(Path(self._settings.outputs), board)
        if self._settings.bitwise:
            avoided = self.avoided.get(runnable.case.task, {})
            bits += peer_checks(self._backend, runnable, seed, self.peer_begun, avoided)
        return bits

    def _is_unwatched(self, case: Case) -> bool:
        """Return whether this is the only verification of a kernel in which a backend could use its strictest checks.

        An edge has them; a kernel without edges has them at its first workload.
        """
        edges = self._catalogue.listing.edges_by_kernel.get(case.kernel, ())
        is_first = case.label == next(iter(case.spec.workloads), "")
        return self._verifies and not self._timed and is_first and all(edge.is_regime for edge in edges)

    def _launches(self, runnable: Runnable) -> TimedLaunches:
        """Return the launches that will be timed; check their outputs here if another process verified them."""
        seeds = self._settings.seeds_of(runnable.case)
        if self._verifies:
            return TimedLaunches(self._backend, runnable, seeds[-1])
        runnable()
        launches = TimedLaunches(self._backend, runnable, seeds[0])
        launches.require_right()
        return launches

    def _peers(self, runnable: Runnable, known: KnownReference) -> PeerResults:
        """Return the times of the peers; if nothing is timed, only the peers that will have no time later."""
        is_needed = self._process < self._settings.peer_processes if self._timed else self._verifies
        if not is_needed or runnable.case.task in self.peerless:
            return PeerResults()
        task, labels = runnable.case.task, self.check_compiled
        return CasePeers(
            self._backend,
            runnable,
            self._watcher,
            self._settings,
            check=self._verifies,
            check_compiled=self._verifies if labels is None else runnable.case.label in labels,
            timed=self._timed,
            process=self._process,
            known=known,
            avoided=self.avoided.get(task, {}),
            settled=self.settled.get(task, ()),
            begun=self.peer_begun,
        ).measure()

    def edge(self, case: Case) -> CaseResult:
        """Verify the edge in every pass of the backend: the first one with every seed, the others with one.

        A regime has one pass and one seed: it affects what is computed, not in which order. The last pass comes first:
        it names the line of an access that ends the process in the others.
        """
        self.begun(case.name)
        with running(timed=False) as stopwatch:
            try:
                entries: list[Entry] = []
                seeds, passes = self._settings.seeds, self._backend.passes(case)
                if case.is_regime:
                    seeds, passes = seeds[:1], dict(list(passes.items())[:1])
                first, *others = passes
                for name in (*others[-1:], first, *others[:-1]):
                    chosen = seeds if name == first else seeds[:1]
                    entries += [entry | {"pass": name} for entry in verify(passes[name], case, chosen)]
                result = self._judged(case, entries)
            except Exception as error:
                result = self._failure(case, error)
            return replace(result, spent=stopwatch.seconds())

    def _judged(self, case: Case, entries: Sequence[Entry]) -> CaseResult:
        if passed(entries):
            return result_of(case, "ok", None, entries)
        return result_of(case, "wrong", complaint(case, self._backend.name, entries), entries)

    def _failure(self, case: Case, error: Exception) -> CaseResult:
        """Return the result of a case that raised; raise the error again if it makes this process useless."""
        if isinstance(error, PeerSpoiled):
            raise error
        if isinstance(error, MemoryError):
            return result_of(case, "skipped", f"{case.name}: {OUT_OF_MEMORY}: {error}")
        if isinstance(error, BackendUnavailable | CacheUnavailable):
            return result_of(case, "skipped", str(error))
        if isinstance(error, PrismBenchError):
            return result_of(case, "failed", str(error))
        if is_sticky(self._backend, error):  # a spec's own functions may raise anything
            raise error
        if lacks_memory(str(error)):
            return result_of(case, "skipped", f"{case.name}: {OUT_OF_MEMORY}: {error}")
        return result_of(case, "failed", f"{case.name}: {described(error)}")


def result_of(
    case: Case,
    status: Status,
    reason: str | None,
    entries: Iterable[Entry] = (),
    measurements: Iterable[Measurement] = (),
    *,
    code: JsonTable | None = None,
) -> CaseResult:
    """Return the case's facts with how it ended."""
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
        before=case.spec.before,
        reason=reason,
        code=code or {},
        verification=tuple(entries),
        measurements=tuple(measurements),
        configuration=case.configuration,
    )
