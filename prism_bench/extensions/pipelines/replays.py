"""Traces replayed on the allocator of this process, and traces recorded: of pipelines, and of a catalogue's cases."""

from pathlib import Path

from prism_bench.backends import Backend
from prism_bench.catalogue import Catalogue
from prism_bench.extensions.memory import Trace, trace
from prism_bench.extensions.memory.replay import Books, footprint, replay, summary
from prism_bench.extensions.pipelines.forms import form
from prism_bench.extensions.pipelines.known import INTEGRATION
from prism_bench.extensions.pipelines.prepared import Prepared
from prism_bench.measurement import Measurement
from prism_bench.run.measuring import is_sticky
from prism_bench.run.verification import verify
from prism_bench.run_record import CaseResult

FAMILY = "allocators"
REPLAYS = 12
EVALUATIONS = 5
LARGEST = 1 << 30  # bytes of a case; larger ones would make a trace of the memory's size


def replayed(path: Path, opened, backend: Backend, first: bool) -> CaseResult:
    """The trace's case on an opened allocator.

    In the first process the profile says what the trace holds at most; the others time single allocations and releases
    and keep their median, one sample a replay.
    """
    found = trace.read(path)
    try:
        if first:
            return _result(found, "ok", profile={"tool": "replay", "values": _values(_held(found, opened))})
        return _result(found, "ok", measurements=tuple(_times(found, opened.allocate, backend.flow())))
    except MemoryError as error:
        return _result(found, "skipped", reason=f"out of memory: {error}")


def _result(found: Trace, status, **facts):
    return CaseResult(
        name=f"trace:{found.name}", kernel=f"trace:{found.name}", family=FAMILY, label="trace",
        workload={"allocations": found.allocations}, bytes=found.tracked().peak, flops=None, status=status, **facts,
    )  # fmt: skip


def _held(found, opened):
    from prism_bench.extensions.memory.allocators import device_used

    opened.close()
    with opened.watched() as external:
        return footprint(found, opened.allocate, Books(opened.used, opened.held, device_used, external))


def _times(found, allocate, flow):
    lanes = [flow.lane(number) for number in range(found.streams)]
    replay(found, allocate, lanes)
    rounds = [replay(found, allocate, lanes) for _ in range(REPLAYS)]
    for metric, part, word in (
        ("allocation_time", "allocations", "median"), ("allocation_tail", "allocations", "p99"),
        ("release_time", "releases", "median"),
    ):  # fmt: skip
        yield Measurement(metric, "kernel", (tuple(summary(getattr(one, part))[word] for one in rounds),))


def _values(held):
    """Bytes and shares with their units; what is not told has its reason."""
    pairs = {
        "peak_asked": (held.asked, "B"), "peak_used": (held.used, "B"), "peak_held": (held.held, "B"),
        "peak_device": (held.device, "B"), "overhead": (held.overhead, "1"),
        "internal_fragmentation": (held.internal, "1"), "external_fragmentation": (held.external, "1"),
    }  # fmt: skip
    return {
        name: {"value": value, "unit": unit, "source": "replay"}
        | ({"reason": "this allocator does not tell"} if value is None else {})
        for name, (value, unit) in pairs.items()
    }


def record_pipelines(catalogue: Catalogue, backend: Backend, label: str, folder: Path) -> Path:
    """The trace of every integration pipeline, its outputs allocated anew, a few evaluations each."""
    from prism_bench.extensions.memory.recorder import recording

    with recording("pipelines") as recorder:
        for pipeline in INTEGRATION:
            with Prepared(pipeline, label, catalogue, backend) as prepared:
                evaluate = form("allocating", prepared)
                for _ in range(EVALUATIONS):
                    evaluate()
                prepared.flow.synchronize()
    return _kept(recorder, folder, backend, label)


def record_catalogue(catalogue: Catalogue, backend: Backend, label: str, folder: Path) -> Path:
    """The trace of a catalogue run: every case of the label prepared and verified, which lays references out too."""
    from prism_bench.extensions.memory.recorder import recording

    with recording("catalogue") as recorder:
        for case in catalogue.cases(labels=(label,)):
            if case.variant or case.sizes.allocated_bytes > LARGEST:
                continue
            try:
                verify(backend, case, seeds=(0,))
            except Exception as error:  # what cannot run here, for whatever reason, asks for no memory
                if is_sticky(backend, error):
                    raise
    return _kept(recorder, folder, backend, label)


def _kept(recorder, folder, backend, label):
    found = recorder.trace(device=backend.facts()["device"], label=label)
    told = recorder.tracker.tracked().plain()
    return trace.save(
        Trace(found.name, found.events, {**found.facts, "tracker": told}), folder / f"{found.name}.json.gz"
    )
