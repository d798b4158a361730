"""Program that a profiler watches: launches every case of an order once between marks, and verifies it.

    python -m prism_bench.workflows.profile_worker ORDER EVENTS

ORDER is a JSON file with a `ProfileOrder`; each event is written to EVENTS as a line of JSON, a `ProfileEvent`. A case
that fails is reported and skipped. An error that makes the device unusable, or a case that takes too long, ends the
process: its parent continues with the rest in another.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from threading import Timer
from types import ModuleType
from typing import Required, TypedDict

from prism_bench.backends import Backend, Runnable, open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import BackendUnavailable, ResultsError
from prism_bench.io.documents import json_line
from prism_bench.profilers.metrics import ProfiledLaunch
from prism_bench.record.schema import Status
from prism_bench.run.measuring import is_sticky
from prism_bench.run.verification import Entry, compare_outputs, complaint, passed
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import Launch
from prism_bench.units import count_text


class CaseEnd(TypedDict, total=False):
    """End of a case: its status, the number of its launches, and of the launches that followed it."""

    status: Required[Status]
    reason: Required[str | None]
    launches: Required[int]
    following: int


class ProfileEvent(TypedDict, total=False):
    """One event of the profiled program.

    In order: `begin` of a case, `at` for each stage, then its `end` with the fields of a `CaseEnd`; `late` if it takes
    too long; `left` are the cases for which no time was left.
    """

    begin: str
    at: str
    end: str
    status: Status
    reason: str | None
    launches: int
    following: int
    late: str
    left: list[str]


CaseLaunches = tuple[list[ProfiledLaunch], list[ProfiledLaunch]]  # of the case, and following it


def ends_of(events: Sequence[ProfileEvent]) -> dict[str, CaseEnd]:
    """Return how each case ended, by name."""
    return {
        event["end"]: CaseEnd(
            status=event.get("status", "failed"),
            reason=event.get("reason"),
            launches=event.get("launches", 0),
            following=event.get("following", 0),
        )
        for event in events
        if "end" in event
    }


def attributed(
    launches: list[ProfiledLaunch], ends: Mapping[str, CaseEnd], cut: bool = False
) -> dict[str, CaseLaunches]:
    """Return the launches of each case, and those that followed it: by the ranges around them, else by their order.

    With `cut` a case ended the program, so that some of its launches may come last. ResultsError if there are no ranges
    and the number of launches is not that of the cases' plans.
    """
    ordered = sorted(launches, key=lambda launch: launch.id)

    def within(name: str) -> list[ProfiledLaunch]:
        return [launch for launch in ordered if any(f":{name}:" in cell for cell in launch.ranges)]

    by_range = {name: (within(name), within(f"after {name}")) for name in ends}
    if cut or sum(len(of_case) + len(after) for of_case, after in by_range.values()) == len(ordered):
        return by_range
    expected = sum(end["launches"] + end.get("following", 0) for end in ends.values())
    if expected != len(ordered):
        raise ResultsError(
            f"the profiler counted {count_text(len(ordered), 'launch', 'launches')} without ranges; "
            f"the cases have {expected}"
        )
    left = iter(ordered)
    return {
        name: (list(islice(left, end["launches"])), list(islice(left, end.get("following", 0))))
        for name, end in ends.items()
    }


def launched(events: Sequence[ProfileEvent]) -> bool:
    """Return whether kernels ran between marks, or the program ended before its first case."""
    return any(event.get("launches") for event in events) or not any("begin" in event for event in events)


def cut_short(events: Sequence[ProfileEvent], case_seconds: float) -> tuple[Status, str]:
    """Return status and reason of the case in which the program ended: timed out or crashed, and in which stage."""
    last, name = [(index, event["begin"]) for index, event in enumerate(events) if "begin" in event][-1]
    during = [event["at"] for event in events[last:] if "at" in event]
    stage = during[-1] if during else "making its inputs"
    if any("late" in event for event in events[last:]):
        return "timed out", f"{name}: the limit for one case, --timeout {case_seconds:g}, was over during {stage}"
    return "crashed", f"{name}: ended the program that profiled it, during {stage}"


def read_events(path: Path) -> list[ProfileEvent]:
    """Return the events that are completely written so far."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def progress(path: Path) -> tuple[int, str]:
    """Return how many cases have ended, and which one is being profiled."""
    events = read_events(path)
    begun = [event["begin"] for event in events if "begin" in event]
    return sum("end" in event for event in events), begun[-1] if begun else "starting"


_TOO_LONG, _STICKY = 70, 71  # exit statuses


class _ProfilerMarks:
    """Named ranges (NVTX) and the driver's profiler start and stop on the device of `xp`; none where it has no CUDA."""

    def __init__(self, xp: ModuleType) -> None:
        self._cuda = getattr(xp, "cuda", None)

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """Attribute everything that is launched inside to `name`."""
        if self._cuda is None:
            yield
            return
        self._cuda.nvtx.RangePush(name)
        try:
            yield
        finally:
            self._cuda.nvtx.RangePop()

    def wait(self) -> None:
        """Wait until the device is idle."""
        if self._cuda is not None:
            self._cuda.runtime.deviceSynchronize()

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """Let a profiler collect only here; the device is idle at both ends."""
        if self._cuda is None:
            yield
            return
        self.wait()
        self._cuda.runtime.profilerStart()
        try:
            yield
            self.wait()
        finally:
            self._cuda.runtime.profilerStop()


class ProfileOrder(TypedDict):
    """Cases to launch: `once` marks all cases together, `traffic` writes back the data that each leaves in L2."""

    backend: str
    catalogue: str
    cases: list[str]
    verify: bool
    traffic: bool
    seconds: float
    case_seconds: float
    once: bool


class _ProfiledCases:
    """The cases of one order on one backend."""

    def __init__(self, backend: Backend, order: ProfileOrder, write: Callable[[ProfileEvent], object]) -> None:
        self._backend, self._order, self._write = backend, order, write
        self._marks = _ProfilerMarks(backend.xp)

    def run(self, catalogue: Catalogue) -> None:
        """Launch every case of the order, until its time is over."""
        names, deadline = self._order["cases"], time.monotonic() + self._order["seconds"]
        with self._marks.profiled() if self._order["once"] else nullcontext():
            for done, name in enumerate(names):
                if time.monotonic() > deadline:
                    self._write({"left": names[done:]})
                    return
                self._write({"begin": name})
                self._write({**self._guarded(catalogue.case(name)), "end": name})

    def _guarded(self, case: Case) -> CaseEnd:
        def end_process() -> None:
            self._write({"late": case.task})
            os._exit(_TOO_LONG)

        guard = Timer(self._order["case_seconds"], end_process)
        guard.daemon = True
        guard.start()
        try:
            return self._case(case)
        except (MemoryError, BackendUnavailable) as error:
            reason = f"{case.name}: out of memory: {error}" if isinstance(error, MemoryError) else str(error)
            return {"status": "skipped", "reason": reason, "launches": 0}
        except Exception as error:  # a spec's own functions may raise anything
            reason = f"{case.name}: {type(error).__name__}: {error}"
            failed: CaseEnd = {"status": "failed", "reason": reason, "launches": 0}
            if is_sticky(self._backend, error):
                self._write({**failed, "end": case.task})
                os._exit(_STICKY)
            return failed
        finally:
            guard.cancel()

    def _case(self, case: Case) -> CaseEnd:
        inputs = case.inputs()
        with self._backend.prepare(case, inputs) as runnable:
            self._write({"at": "a first launch, which the profiler does not watch"})
            runnable()  # loaded, and its caches of instructions warm
            runnable.reset(inputs)
            self._marks.wait()
            self._write({"at": "the launch that the profiler watches"})
            following = self._launch(case, runnable)
            self._write({"at": "comparing with the reference"})
            entries: list[Entry] = []
            if self._order["verify"]:
                outputs = runnable.arrays(output.name for output in case.spec.outputs)
                entries = compare_outputs(self._backend, case, inputs, outputs, 0)
        launches = sum(isinstance(step, Launch) and not step.is_empty for step in case.plan.steps(self._backend.device))
        reason = None if passed(entries) else complaint(case, self._backend.name, entries)
        return {"status": "wrong" if reason else "ok", "reason": reason, "launches": launches, "following": following}

    def _launch(self, case: Case, runnable: Runnable) -> int:
        """Launch between the marks; return the number of kernels that followed, to write back the case's data in L2."""
        harness = getattr(self._backend, "harness", None) if self._order["traffic"] else None
        if harness:
            harness.clear_caches()
        with nullcontext() if self._order["once"] else self._marks.profiled():
            with self._marks.range(case.task):
                runnable()
            if harness:
                with self._marks.range(f"after {case.task}"):
                    harness.write_back()
        return int(harness is not None)


def main() -> None:
    """Work through the order."""
    order: ProfileOrder = json.loads(Path(sys.argv[1]).read_text())
    with Path(sys.argv[2]).open("a", buffering=1) as events:
        backend = open_backend(order["backend"])
        cases = _ProfiledCases(backend, order, lambda event: events.write(json_line(event) + "\n"))
        cases.run(discover(order["catalogue"]))


if __name__ == "__main__":
    main()
