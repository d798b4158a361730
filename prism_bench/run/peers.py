"""Peers of one prepared case: each is set up, checked and timed by itself."""

import gc
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from prism_bench.backends import Backend, Runnable
from prism_bench.backends.base import HeldBytes
from prism_bench.errors import PrismBenchError, described
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.run.measuring import (
    FORMS,
    IMPORTING,
    STATE,
    VERIFYING,
    DeviceWatcher,
    empty,
    is_sticky,
    lacks_memory,
    measure_runnable,
    phase,
)
from prism_bench.run.settings import Settings
from prism_bench.run.verification import Entry, KnownReference, compare_outputs
from prism_bench.spec.case import Case
from prism_bench.spec.peer import PeerFacts, is_compiled
from prism_bench.spec.tolerance import Tolerance, normwise
from prism_bench.units import bytes_text

# Device memory that a peer still holds after its end: what grows with every use is a leak, a workspace is not.

_SMALL = 1 << 20  # of live arrays: less is no finding
_LIBRARY_CODE = 32 << 20  # outside of arrays: the driver loads a library's kernels when they are first used
_WORKSPACE = 256 << 20  # what a library may keep for later calls, where a peer cannot be used again to find out
_USES = 2
_PAUSE = 0.1  # seconds


class HeldMemory:
    """The memory that this process held before a peer; `alone` is whether no other process of the run uses the device.

    Libraries keep workspaces and loaded code, so that the first use may leave something. Where it did, the peer is
    used twice more: memory that grows by more than 1 MiB each time is lost. Outside of arrays the memory is that of
    the whole device: there nothing is concluded where it grows unevenly, or while nothing is used, since others are at
    work.
    """

    def __init__(self, backend: Backend, alone: bool) -> None:
        self._backend, self._alone = backend, alone
        self._before = backend.held_bytes(alone)

    def leak(self, use: Callable[[], None], *, lacked_memory: bool = False) -> str | None:
        """Return the reason why a peer that has ended leaks, or None; `use` prepares it, calls it once and ends it.

        A peer that `lacked_memory` is not used again.
        """
        if not self._suspicious(self._growth()):
            return None
        gc.collect()
        grown = self._growth()
        if not self._suspicious(grown):
            return None
        if lacked_memory:
            return _reason(grown) if sum(grown) > _WORKSPACE else None
        by_arrays = grown.arrays > _SMALL
        steps = [self._step(use, by_arrays) for _ in range(_USES)]
        if min(steps) <= _SMALL or not (by_arrays or self._is_own(steps)):
            return None
        return _reason(self._growth())

    def _step(self, use: Callable[[], None], by_arrays: bool) -> int:
        """Return by how many bytes the memory grows with one use, in arrays or else outside of them."""
        before = self._growth()
        with suppress(Exception):  # one that raises may leak, too
            use()
        gc.collect()
        after = self._growth()
        return after.arrays - before.arrays if by_arrays else after.outside - before.outside

    def _is_own(self, steps: list[int]) -> bool:
        """Return whether memory outside of arrays grew evenly with the uses, and stays as it is without one."""
        before = self._growth().outside
        time.sleep(_PAUSE)
        return max(steps) <= 2 * min(steps) and abs(self._growth().outside - before) <= _SMALL

    def _growth(self) -> HeldBytes:
        now = self._backend.held_bytes(self._alone)
        return HeldBytes(now.arrays - self._before.arrays, now.outside - self._before.outside)

    def _suspicious(self, grown: HeldBytes) -> bool:
        return grown.arrays > _SMALL or grown.outside > _LIBRARY_CODE


def _reason(grown: HeldBytes) -> str:
    return f"it leaks: {bytes_text(sum(grown))} of device memory are still held after its end, more after each use"


# Peers of one prepared case: each is set up, checked and timed by itself, and its failure costs only its own cell.

PEER_TOLERANCE = normwise(1e-3)
LONGEST_REASON = 200  # characters
_SUBJECT = "peer:"


class PeerSpoiled(Exception):
    """A peer left this process in a state that cannot be restored: another process does the case again without it."""


@dataclass
class PeerResults:
    """The measurements of a case's peers, and by name what is known of each."""

    measurements: list[Measurement] = field(default_factory=list[Measurement])
    facts: dict[str, PeerFacts] = field(default_factory=dict[str, PeerFacts])


@dataclass
class CasePeers:
    """Peers of one prepared case in one process; the libraries' global state is restored after each.

    `check` compares their results with the reference first, those of compiled forms with `check_compiled`; later
    processes need not do it again. Peers that are neither checked nor timed are left out. `known` keeps the reference
    from peer to peer. Those in `avoided` have no time, for the reason given there; those in `settled` have enough
    already. `begun` gets the name of a peer before each of its steps, and an empty name after the last peer.
    """

    backend: Backend
    runnable: Runnable
    watcher: DeviceWatcher
    settings: Settings
    check: bool = True
    check_compiled: bool = True
    timed: bool = True
    process: int = 0
    known: KnownReference = field(default_factory=KnownReference)
    avoided: Mapping[str, str] = field(default_factory=dict[str, str])
    settled: Collection[str] = ()
    begun: Callable[[str], None] = lambda name: None
    _facts: dict[str, PeerFacts] = field(default_factory=dict[str, PeerFacts], init=False)

    def measure(self) -> PeerResults:
        """Return the times of every peer, on the same inputs by the same clock; a peer without one has its reason.

        If `timed` is not set, peers are only checked. PeerSpoiled where a peer makes the process useless, and the error
        itself where the device answers no more.
        """
        case = self.runnable.case
        with phase(FORMS):
            offered = self.backend.peers(case) if self.settings.peers else ()
        names = [name for name in offered if name not in self.settled and (self.timed or self.checks(name))]
        if self.known.is_kept(case) and any(self.checks(name) for name in names):
            with phase(VERIFYING):
                _evaluate_reference(self.backend, self.runnable, self.known)
        measurements: list[Measurement] = []
        for name in names:
            reason = self.avoided.get(name)
            measurements += [_without_time(name, reason)] if reason else self._take(name)
        if names:
            self.begun("")
        return PeerResults(measurements, {name: facts for name, facts in self._facts.items() if facts})

    def checks(self, name: str) -> bool:
        """Return whether the results of the peer are compared with the reference."""
        return self.check_compiled if is_compiled(name) else self.check

    def _take(self, name: str) -> list[Measurement]:
        """Return the peer's measurements, or an empty one with the reason."""
        from prism_bench.backends.cuda.peers.library_state import LibraryState, ready

        self.begun(name)
        try:
            with phase(IMPORTING):
                ready(self.library(name))
        except Exception as error:  # it cannot be imported
            return [_without_time(name, _first_line(error))]
        with phase(STATE):
            held, state = HeldMemory(self.backend, alone=self.timed), LibraryState.now()
        measurements, failure = self._used(name)
        with phase(STATE):
            changed = state.restore()
            if changed.lasting:
                raise PeerSpoiled(f"it changed {changed.lasting[0]}, which could not be changed back")
            leak = held.leak(lambda: self._use_once(name), lacked_memory=lacks_memory(failure or ""))
        if leak:
            raise PeerSpoiled(leak)
        reason = failure or changed.reason
        return [_without_time(name, reason)] if reason else measurements

    def _used(self, name: str) -> tuple[list[Measurement], str | None]:
        """Return the measurements of the peer and the reason for a failure; raise an error that lost the device."""
        try:
            with phase(f"{_SUBJECT}{name}"), self._prepared(name) as peer:
                self._facts[name] = _facts_of(peer)
                if self.checks(name):
                    self.begun(name)
                    precision = self._lesser_precision(name, peer)
                    self._facts[name] |= {"precision": precision} if precision else {}
                measurements = self._timed(name, peer) if self.timed else []
                peer.confirm()
                self._facts[name] |= _facts_of(peer)
                return measurements, None
        except Exception as error:  # a library's failure is the peer's; the kernel keeps its times
            if is_sticky(self.backend, error):
                raise
            return [], _first_line(error)  # the error itself would keep the peer's arrays

    def _timed(self, name: str, peer: Runnable) -> list[Measurement]:
        measurements = measure_runnable(
            peer,
            f"{_SUBJECT}{name}",
            self.settings,
            self.watcher,
            skipped=self.settings.left_out_of_peers(self.process),
            step=lambda: self.begun(name),
        )
        return [
            entry if entry.samples else replace(entry, reason=named(entry.reason or "", name)) for entry in measurements
        ]

    def _lesser_precision(self, name: str, peer: Runnable) -> str | None:
        """Return in words where the peer's results miss the kernel's tolerance; None where they pass it.

        A PrismBenchError where they miss the peers' tolerance too, or where a strong library misses the kernel's.
        """
        spec = self.runnable.case.spec
        peer()
        outputs = peer.arrays([output.name for output in spec.outputs])
        missed = self._missed(peer, outputs)
        if missed is None:
            return None
        looser = spec.peer_tolerance or PEER_TOLERANCE
        wrong = missed if self.is_strong(name) else self._missed(peer, outputs, looser)
        if wrong:
            raise PrismBenchError(_difference(wrong))
        return f"{_difference(missed)}; {_allowance(self.runnable.case, missed)}"

    def _missed(self, peer: Runnable, outputs: Mapping[str, Any], tolerance: Tolerance | None = None) -> Entry | None:
        """Return the first output that misses the tolerance, by default the kernel's."""
        entries = compare_outputs(
            self.backend, self.runnable.case, peer.inputs, outputs, 0, tolerance=tolerance, known=self.known
        )
        return next((entry for entry in entries if not entry["passed"]), None)

    def _use_once(self, name: str) -> None:
        """Set the peer up, call it and end it, and restore the libraries' state."""
        from prism_bench.backends.cuda.peers.library_state import LibraryState

        self.begun(name)
        state = LibraryState.now()
        try:
            with self._prepared(name) as peer:
                peer()
        finally:
            state.restore()

    def _prepared(self, name: str) -> Runnable:
        return self.backend.prepare_peer(self.runnable.case, name, self.runnable)

    def library(self, name: str) -> str | None:
        """Return the name of the library that the peer asks for; None where the spec has no such peer."""
        from prism_bench.backends.cuda.peers.torch_forms import named_peer

        try:
            return named_peer(self.runnable.case, name)[0].library.name
        except LookupError:
            return None

    def is_strong(self, name: str) -> bool:
        """Return whether the library is one of the strong ones, whose results pass the kernel's own tolerance."""
        from prism_bench.spec.peer import LIBRARIES

        library = self.library(name)
        return library is not None and LIBRARIES[library].is_strong


def _evaluate_reference(backend: Backend, runnable: Runnable, known: KnownReference) -> None:
    """Evaluate what the peers are compared with before the first one, whose memory it would be taken for.

    Where this fails, it fails again for each peer, which reports it.
    """
    try:
        known.outputs(backend, runnable.case, runnable.inputs)
    except Exception as error:
        if is_sticky(backend, error):
            raise


def peers_without_time(result: CaseResult) -> dict[str, str]:
    """Return by name the peers of a result that have no time in any metric, with the reason."""
    timed = {measurement.subject for measurement in result.measurements if measurement.samples}
    cells = [
        measurement
        for measurement in result.measurements
        if measurement.subject.startswith(_SUBJECT) and measurement.subject not in timed
    ]
    return {
        measurement.subject.removeprefix(_SUBJECT): measurement.reason or "it has no samples"
        for measurement in reversed(cells)
    }


def peers_far_behind(result: CaseResult, factor: float | None) -> list[str]:
    """Return the peers whose cold time is more than `factor` times the kernel's; without a factor, none."""
    kernel = result.measurement("cold_time")
    limit = factor * (kernel.median or 0.0) if factor and kernel and kernel.valid else 0.0
    cold = [
        measurement
        for measurement in result.measurements
        if measurement.metric == "cold_time" and measurement.subject.startswith(_SUBJECT)
    ]
    behind = [
        measurement.subject
        for measurement in cold
        if limit and measurement.valid and (measurement.median or 0.0) > limit
    ]
    return [subject.removeprefix(_SUBJECT) for subject in behind]


def named(reason: str, name: str) -> str:
    """Return the reason of an empty cell, which names the peer or its library, in at most 200 characters."""
    library = next(iter(name.split("_")))
    text = reason if library.lower() in reason.lower() else f"peer {name}: {reason}"
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 3]}..."


def _first_line(error: Exception) -> str:
    """Return the first line of the error's message, with its type unless it is one of this program."""
    lines = described(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _facts_of(peer: Runnable) -> PeerFacts:
    """Return what the peer's evidence holds, as a record keeps it."""
    evidence = peer.evidence()
    known = {key: evidence[key] for key in PeerFacts.__annotations__ if evidence.get(key) is not None}
    return cast("PeerFacts", known)


def _without_time(name: str, reason: str) -> Measurement:
    return empty("cold_time", f"{_SUBJECT}{name}", named(reason, name))


def _difference(entry: Entry) -> str:
    """Return by how much an output differs from the reference: its `y` differs from the reference by 0.1."""
    if entry.get("error"):
        return str(entry["error"])
    if entry.get("norm_error"):
        return f"its {entry['output']} differs from the reference by {entry['norm_error']:.2g}"
    return f"its {entry['output']} differs from the reference in {entry.get('differing', 0)} elements"


def _allowance(case: Case, entry: Entry) -> str:
    """Return what of the kernel's tolerance an output misses: the norm of the error, or that of single elements."""
    limit = case.spec.tolerance_of(entry["output"]).normwise
    if limit is not None and entry.get("norm_error", 0) > limit:
        return f"the kernel is allowed {limit:.2g}"
    outside = f"{entry.get('differing', 0)} of {entry.get('compared', 0)} elements"
    return f"{outside} are outside the kernel's tolerance ({entry.get('tolerance', 'by shape')})"
