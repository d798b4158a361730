"""Replays of traces on the allocator of this process, and recordings of traces: of programs, and of a catalogue."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_bench.backends import Backend
from prism_bench.backends.base import Flow
from prism_bench.extensions.memory import Trace, trace
from prism_bench.extensions.memory.replay import DeviceUse, Footprint, footprint, replay, summary
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CaseResult
from prism_bench.record.schema import Status
from prism_bench.run.measuring import is_sticky
from prism_bench.run.task_worker import Programs, TaskContext
from prism_bench.run.verification import verify

if TYPE_CHECKING:  # these load CuPy
    from prism_bench.extensions.memory.allocators import Opened
    from prism_bench.extensions.memory.recorder import Recorder

FAMILY = "allocators"
REPLAYS = 12
LARGEST = 1 << 30  # bytes of a case; larger ones would make a trace of the memory's size


def replayed(path: Path, opened: "Opened", backend: Backend, first: bool) -> CaseResult:
    """Return the trace's case on an opened allocator.

    In the first process its profile holds the largest use of memory; the others time single allocations and releases
    and keep their median, one sample a replay.
    """
    found = trace.read(path)
    try:
        if first:
            return _result(found, "ok", profile={"tool": "replay", "values": _values(_footprint(found, opened))})
        return _result(found, "ok", measurements=tuple(_times(found, opened.allocate, backend.flow())))
    except MemoryError as error:
        return _result(found, "skipped", reason=f"out of memory: {error}")


def _result(found: Trace, status: Status, **facts: Any) -> CaseResult:
    return CaseResult(
        name=f"trace:{found.name}", kernel=f"trace:{found.name}", family=FAMILY, label="trace",
        workload={"allocations": found.allocations}, bytes=found.tracked().peak, flops=None, status=status, **facts,
    )  # fmt: skip


def _footprint(found: Trace, opened: "Opened") -> Footprint:
    from prism_bench.extensions.memory.allocators import device_used

    opened.close()
    with opened.watched() as external:
        return footprint(found, opened.allocate, DeviceUse(opened.used, opened.held, device_used, external))


def _times(found: Trace, allocate: Callable[[int], object], flow: Flow) -> Iterator[Measurement]:
    lanes = [flow.lane(number) for number in range(found.streams)]
    replay(found, allocate, lanes)
    rounds = [replay(found, allocate, lanes) for _ in range(REPLAYS)]
    for metric, part, word in (
        ("allocation_time", "allocations", "median"), ("allocation_tail", "allocations", "p99"),
        ("release_time", "releases", "median"),
    ):  # fmt: skip
        yield Measurement(metric, "kernel", (tuple(summary(getattr(one, part))[word] for one in rounds),))


def _values(held: Footprint) -> dict[str, dict[str, Any]]:
    """Return bytes and shares with their units; a value that the allocator does not report has its reason."""
    pairs = {
        "peak_asked": (held.asked, "B"), "peak_used": (held.used, "B"), "peak_held": (held.held, "B"),
        "peak_device": (held.device, "B"), "overhead": (held.overhead, "1"),
        "internal_fragmentation": (held.internal, "1"), "external_fragmentation": (held.external, "1"),
    }  # fmt: skip
    return {
        name: {"value": value, "unit": unit, "source": "replay"}
        | ({"reason": "this allocator does not report it"} if value is None else {})
        for name, (value, unit) in pairs.items()
    }


def record_programs(programs: Programs, context: TaskContext, folder: Path) -> Path:
    """Record the trace of the programs; return its file."""
    from prism_bench.extensions.memory.recorder import recording

    with recording("pipelines") as recorder:
        programs.evaluate(context)
    return _save(recorder, folder, context)


def record_catalogue(context: TaskContext, folder: Path) -> Path:
    """Record the trace of a catalogue run: every case of the label prepared and verified; return its file."""
    from prism_bench.extensions.memory.recorder import recording

    with recording("catalogue") as recorder:
        for case in context.catalogue.cases(labels=(context.order["label"],)):
            if case.variant or case.sizes.allocated_bytes > LARGEST:
                continue
            try:
                verify(context.backend, case, seeds=(0,))
            except Exception as error:  # what cannot run here, for whatever reason, allocates nothing
                if is_sticky(context.backend, error):
                    raise
    return _save(recorder, folder, context)


def _save(recorder: "Recorder", folder: Path, context: TaskContext) -> Path:
    found = recorder.trace(device=context.backend.facts()["device"], label=context.order["label"])
    facts = {**found.facts, "tracker": recorder.tracker.tracked().plain()}
    return trace.save(Trace(found.name, found.events, facts), folder / f"{found.name}.json.gz")
