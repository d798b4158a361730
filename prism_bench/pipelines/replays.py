"""Traces replayed on the allocator of this process, and traces recorded: of pipelines, and of a catalogue's cases."""

from pathlib import Path

from prism_bench.backends import Backend
from prism_bench.catalogue import Catalogue
from prism_bench.errors import PrismBenchError
from prism_bench.measurement import Measurement
from prism_bench.memory import Trace, trace
from prism_bench.memory.replay import footprint, replay, summary
from prism_bench.pipelines.forms import form
from prism_bench.pipelines.known import INTEGRATION
from prism_bench.pipelines.prepared import Prepared
from prism_bench.run_record import CaseResult
from prism_bench.workbench.verification import verify

FAMILY = "allocators"
REPLAYS = 12
EVALUATIONS = 5
LARGEST = 1 << 30  # bytes of a case; larger ones would make a trace of the memory's size


def replayed(path: Path, opened, backend: Backend, first: bool) -> CaseResult:
    """The trace's case on an opened allocator: medians of single allocations and releases, one sample a replay.

    In the first process the profile says what the trace holds at most, counted in a replay of its own.
    """
    from prism_bench.memory.allocators import device_used

    found = trace.read(path)
    flow = backend.flow()
    lanes = [flow.lane(number) for number in range(found.streams)]
    replay(found, opened.allocate, lanes)
    rounds = [replay(found, opened.allocate, lanes) for _ in range(REPLAYS)]
    allocations, releases = ([summary(getattr(one, name)) for one in rounds] for name in ("allocations", "releases"))
    profile = {}
    if first:
        opened.close()
        held = footprint(found, opened.allocate, opened.used, opened.held, device_used)
        profile = {"tool": "replay", "values": _values(held, allocations[-1], opened)}
    return CaseResult(
        name=f"trace:{found.name}", kernel=f"trace:{found.name}", family=FAMILY, label="trace",
        workload={"allocations": found.allocations}, bytes=held_bytes(found), flops=None, status="ok", profile=profile,
        measurements=(_medians("allocation_time", allocations), _medians("release_time", releases)),
    )  # fmt: skip


def held_bytes(found: Trace) -> int:
    """What the trace has in use at most."""
    return found.tracked().peak


def _medians(metric, rounds):
    return Measurement(metric, "kernel", (tuple(one["median"] for one in rounds),))


def _values(held, last, opened):
    """Bytes and shares with their units; what is not told has its reason."""
    silent = "this allocator does not tell"
    free = opened.facts().get("external_fragmentation")
    pairs = {
        "peak_asked": (held.asked, "B"), "peak_used": (held.used, "B"), "peak_held": (held.held, "B"),
        "peak_device": (held.device, "B"), "overhead": (held.overhead, "1"),
        "internal_fragmentation": (held.internal, "1"), "external_fragmentation": (free, "1"),
        "allocation_p99": (last["p99"], "s"),
    }  # fmt: skip
    return {
        name: {"value": value, "unit": unit, "source": "replay"} | ({"reason": silent} if value is None else {})
        for name, (value, unit) in pairs.items()
    }


def record_pipelines(catalogue: Catalogue, backend: Backend, label: str, folder: Path) -> Path:
    """The trace of every integration pipeline, its outputs allocated anew, a few evaluations each."""
    from prism_bench.memory.recorder import recording

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
    from prism_bench.memory.recorder import recording

    with recording("catalogue") as recorder:
        for case in catalogue.cases(labels=(label,)):
            if case.variant or case.allocated_bytes > LARGEST:
                continue
            try:
                verify(backend, case, seeds=(0,))
            except (PrismBenchError, MemoryError):  # what cannot run here asks for no memory
                continue
    return _kept(recorder, folder, backend, label)


def _kept(recorder, folder, backend, label):
    found = recorder.trace(device=backend.facts()["device"], label=label)
    told = recorder.tracker.tracked().plain()
    return trace.save(
        Trace(found.name, found.events, {**found.facts, "tracker": told}), folder / f"{found.name}.json.gz"
    )
