"""Recording of a case's regions: its build with probes, its launches with and without them, the buffer they leave."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import prod
from statistics import median
from typing import Any

import numpy as np

from prism_bench.backends import Backend, Runnable
from prism_bench.compilation import Resources
from prism_bench.compilation.languages import BuiltCode, build, build_request
from prism_bench.compilation.program import cuda_files, is_prebuilt
from prism_bench.compilation.sources import without_comments
from prism_bench.errors import BackendUnavailable, MeasurementInvalid, SpecError, UsageError, VerificationFailed
from prism_bench.extensions.timeline.regions import RECORD, UNCLOSED, RegionTimeline, name_of, timeline_of
from prism_bench.measure.sampling import median_interval
from prism_bench.record.measurement import Sample
from prism_bench.run.verification import complaint, passed, verify_prepared
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, Launch
from prism_bench.units import count_text

# Regions of a source: their names, and the ids by which records refer to them.

_NAMED = re.compile(r'\bPB_REGION(?:_BEGIN\s*\(\s*\w+\s*,|\s*\()\s*"((?:\\.|[^"\\\n])*)"')


def region_id(name: str) -> int:
    """Return the id of a region's name as `regions.cuh` computes it: 32-bit FNV-1a.

    Fowler, Noll, Vo, Eastlake: The FNV Non-Cryptographic Hash Algorithm, draft-eastlake-fnv.
    """
    value = 2166136261
    for byte in name.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value


def region_names(case: Case) -> dict[int, str]:
    """Return the names of the regions in the case's source and its headers by id; a UsageError without regions."""
    spec = case.spec
    if spec.language != CUDA or spec.callable is not None or is_prebuilt(spec.source_file):
        written = "machine code" if is_prebuilt(spec.source_file) else spec.written_in
        raise UsageError(f"{case.name}: regions are for kernels whose source is CUDA C++; this one is {written}")
    names: dict[int, str] = {}
    for path in cuda_files(spec.source_file, spec.options):
        for name in _NAMED.findall(without_comments(path.read_text())):
            if not name or "\\" in name:
                raise UsageError(f'{path}: region "{name}": a name has at least one character, and no backslash')
            if names.setdefault(region_id(name), name) != name:
                raise UsageError(
                    f"{path}: regions '{names[region_id(name)]}' and '{name}' have the same id; rename one"
                )
    if not names:
        raise UsageError(
            f"{case.name}: {spec.source_file.name} has no region; add #include <prism_bench/regions.cuh> and "
            'PB_REGION("name"); to a scope of it'
        )
    return names


# The buffer of records in the device's memory, and the build that fills it.

_LINE = 32  # words from one shard's count to the next
_MOST_SHARDS = 64
_FIRST_REGIONS, _MOST_REGIONS = 1 << 16, 1 << 24  # of 32 bytes
_VARIABLES = ("region_records", "region_counts")


@dataclass(frozen=True)
class Capture:
    """Content of the buffer after a launch.

    `records` are those that were written, `dropped` regions came when their shard was full, `lost` ones reserved a
    record and never wrote it. A buffer with room for `needed` regions would have dropped none.
    """

    records: np.ndarray
    dropped: int
    lost: int
    needed: int


@dataclass(frozen=True)
class RegionBuffer:
    """A buffer of `shards`, a power of two, with room for `regions` each."""

    shards: int
    regions: int

    @classmethod
    def of(cls, case: Case, device: Device, regions: int) -> "RegionBuffer":
        """Return a buffer for that many regions of a case: no launch has fewer blocks than the buffer has shards."""
        launches = [step for step in case.plan.steps(device) if isinstance(step, Launch) and not step.is_empty]
        blocks = min((prod(step.extents[0]) for step in launches), default=1)
        shards = min(_MOST_SHARDS, 1 << (max(blocks, 1).bit_length() - 1))
        return cls(shards, -(-regions // shards))

    def probed(self, case: Case) -> Case:
        """Return the case with its regions switched on."""
        return _with_options(
            case, f"-DPRISM_BENCH_REGIONS={self.regions}", f"-DPRISM_BENCH_REGION_SHARDS={self.shards}"
        )

    def clear(self, runnable: Runnable) -> None:
        """Enqueue: the buffer is empty. A UsageError where no kernel of the case has a region."""
        try:
            for name in _VARIABLES:
                runnable.clear_variable(f"prism_bench::{name}")
        except SpecError as error:
            raise UsageError(f"{runnable.case.name}: no kernel that it launches has a region ({error})") from error

    def read(self, runnable: Runnable) -> Capture:
        """Return the buffer's content, after all work is done."""
        records, counts = (
            np.stack(runnable.variables(f"prism_bench::{name}", kind))
            for name, kind in zip(_VARIABLES, (RECORD, np.uint32), strict=True)
        )
        reserved = counts.reshape(-1, _LINE)[:, 0].astype(np.int64)
        kept = np.minimum(reserved, self.regions)
        written = records.ravel()[records.ravel()["region"] != 0]
        needed = int(reserved.max(initial=0)) * self.shards
        return Capture(written, int((reserved - kept).sum()), int(kept.sum()) - len(written), needed)


def _with_options(case: Case, *options: str) -> Case:
    return replace(case, spec=replace(case.spec, options=(*case.spec.options, *options)))


def refuse_incomplete(capture: Capture, names: Mapping[int, str], buffer: RegionBuffer, case: str) -> None:
    """Raise a UsageError for a buffer that was too small, regions that never closed, and no regions at all."""
    whole = len(capture.records) + capture.dropped + capture.lost
    if capture.dropped:
        raise UsageError(
            f"{case}: {capture.dropped} of {count_text(whole, 'region')} were dropped: the buffer has room for "
            f"{buffer.shards * buffer.regions}, and {capture.needed} are needed; record a smaller workload"
        )
    unclosed = capture.records[(capture.records["place"] & UNCLOSED) != 0]
    if len(unclosed):
        first = unclosed[0]
        raise UsageError(
            f"{case}: region '{name_of(int(first['region']), names)}' never closes in block {first['block']}, warp "
            f"{first['place'] & 31} ({len(unclosed)} of {count_text(whole, 'region')}): its scope ends before "
            "PB_REGION_END"
        )
    if capture.lost:
        raise UsageError(
            f"{case}: {count_text(capture.lost, 'region')} of {whole} never closed: their warps ended inside them, by "
            "exit or trap"
        )
    if not whole:
        raise UsageError(f"{case}: its launches entered no region; on the emulator they are those for CPU_CUDA")


# Cost of the probes, in machine code and in time.

_SERIALIZED = "wgmma.mma_async instructions are serialized"
_MOST_COST = 0.05


def code_notes(plain: BuiltCode, probed: BuiltCode) -> list[str]:
    """Return a sentence for each change of the code by its probes that changes what is measured."""
    before, after = list(plain.resources.values()), list(probed.resources.values())
    notes: list[str] = []
    registers, spills = (tuple(map(count, (before, after))) for count in (_most_registers, _spills))
    if registers[0] != registers[1]:
        notes.append(f"registers with probes: {registers[1]}, without: {registers[0]}")
    if spills[1] > spills[0]:
        notes.append(f"the probes spill registers: {spills[1]} bytes, {spills[0]} without them")
    serialized = [any(_SERIALIZED in kernel.log for kernel in side.kernels.values()) for side in (plain, probed)]
    if serialized[1] and not serialized[0]:
        notes.append("the probes keep the compiler from overlapping wgmma instructions: move regions away from them")
    return notes


_FREE_REGISTERS, _REGISTERS_AT_ONCE = 32, 8  # of a thread: a multiprocessor has 32 for each, handed out by eights


def within_registers(plain: Case, probed: Case, device: Device) -> Case:
    """Return the probed case, held to the registers of the plain one where it need not spill for that.

    With more of them fewer blocks may fit a multiprocessor, and the timeline would be of another kernel.
    """
    before, after = (_resources(case, device) for case in (plain, probed))
    most = max(_FREE_REGISTERS, -(-_most_registers(before) // _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE)
    if _most_registers(after) <= most:
        return probed
    held = _with_options(probed, f"--maxrregcount={most}")
    return held if _spills(_resources(held, device)) <= _spills(before) else probed


def _resources(case: Case, device: Device) -> list[Resources]:
    request = build_request(case, device)
    return list(build(request).resources.values()) if request else []


def _most_registers(entries: Iterable[Resources]) -> int:
    return max((entry.registers for entry in entries), default=0)


def _spills(entries: Iterable[Resources]) -> int:
    return sum(entry.spill_stores + entry.spill_loads for entry in entries)


@dataclass(frozen=True)
class ProbeCost:
    """Seconds of launches without and with probes, in pairs, and the events of the busiest warp's place on the device.

    An event is the beginning or the end of a region.
    """

    plain: tuple[float, ...]
    probed: tuple[float, ...]
    events: int

    @property
    def seconds(self) -> float:
        """Return the median difference of a pair."""
        return median(after - before for before, after in zip(self.plain, self.probed, strict=True))

    @property
    def share(self) -> float:
        """Return the difference as a share of the time without probes."""
        return self.seconds / median(self.plain)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of that share; None with too few pairs."""
        pairs = zip(self.plain, self.probed, strict=True)
        interval = median_interval([after - before for before, after in pairs])
        whole = median(self.plain)
        return (interval[0] / whole, interval[1] / whole) if interval else None

    @property
    def is_high(self) -> bool:
        """Return whether the probes change the kernel too much for its times to be taken as they are."""
        return self.share > _MOST_COST

    @property
    def is_resolved(self) -> bool:
        """Return whether the launches show that probes cost time at all."""
        return self.interval is not None and self.interval[0] > 0

    @property
    def per_event(self) -> float:
        """Return the seconds that the launch takes longer for each event of the busiest place."""
        return self.seconds / max(self.events, 1)


# The recording.


@dataclass(frozen=True)
class Recording:
    """Regions of one launch of a case, what recording them cost (None on the emulator), and notes on the code."""

    case: str
    backend: str
    device: str
    buffer: RegionBuffer
    timeline: RegionTimeline
    cost: ProbeCost | None = None
    notes: tuple[str, ...] = ()


def record(
    backend: Backend, case: Case, pairs: int, regions: int = _FIRST_REGIONS, most: int = _MOST_REGIONS
) -> Recording:
    """Return the regions of a launch; on a GPU with the cost of the probes by that many pairs of launches.

    The buffer has room for that many `regions`, or for as many as a launch enters, at most `most`. Raise UsageError
    where regions are missing, never close or are dropped, and where the kernel writes no output.
    """
    names = region_names(case)
    buffer = RegionBuffer.of(case, backend.device, regions)
    probed_case, inputs = buffer.probed(case), case.inputs()
    if backend.name != "emulator":
        probed_case = within_registers(case, probed_case, backend.device)
    samples: list[tuple[Sample, Sample]] = []
    with ExitStack() as stack:
        probed = stack.enter_context(backend.prepare(probed_case, inputs))
        buffer.clear(probed)
        probed()
        capture = buffer.read(probed)
        if not capture.dropped:
            _verify(backend, probed)
            if backend.name != "emulator":
                plain = stack.enter_context(backend.prepare(case, inputs))
                samples = timed_pairs(plain, probed, lambda: buffer.clear(probed), _timers(backend), pairs)
                capture = buffer.read(probed)
    if capture.dropped and capture.needed <= most:  # a fourth more, since blocks may share out their work in other ways
        return record(backend, case, pairs, min(most, capture.needed * 5 // 4), most)
    refuse_incomplete(capture, names, buffer, case.name)
    device = str(backend.facts()["device"])
    if not samples:
        return Recording(case.name, backend.name, device, buffer, timeline_of(capture.records, names, None))
    clock = samples[-1][1].clock
    if clock is None:
        raise MeasurementInvalid(f"{case.name}: no multiprocessor's clock was read around the launch")
    timeline = timeline_of(capture.records, names, clock)
    seconds = [tuple(sample.seconds for sample in side) for side in zip(*samples, strict=True)]
    cost = ProbeCost(seconds[0], seconds[1], timeline.busiest_events)
    requests = [build_request(each, backend.device) for each in (case, probed_case)]
    notes = code_notes(*(build(request) for request in requests if request))
    return Recording(case.name, backend.name, device, buffer, timeline, cost, tuple(notes))


# Makes a timer of a runnable; the second function is called before each launch, outside of what is timed.
Timers = Callable[[Runnable, Callable[[], None]], Callable[[], Sample]]


def _timers(backend: Backend) -> Timers:
    """Return what makes the timers of cold launches, on the clock by which every kernel is timed."""
    from prism_bench.backends.cuda.backend import CudaBackend
    from prism_bench.backends.cuda.timers import StreamNotHeld

    if not isinstance(backend, CudaBackend):
        raise BackendUnavailable(f"no kernel's code runs on the backend {backend.name}; use cuda or emulator")
    harness = backend.harness

    def timer(runnable: Runnable, prepare: Callable[[], None]) -> Callable[[], Sample]:
        def sample(tries: int = 3) -> Sample:
            harness.forget_persisting()
            prepare()
            try:
                return harness.timed(runnable, cold=True, tries=1)  # a second try would add to the buffer
            except StreamNotHeld:
                if tries == 1:
                    raise
                return sample(tries - 1)

        return sample

    return timer


def timed_pairs(
    plain: Runnable, probed: Runnable, clear: Callable[[], None], timers: Timers, pairs: int
) -> list[tuple[Sample, Sample]]:
    """Return samples without and with probes in turn; the buffer then holds the regions of the last launch."""

    def emptied() -> None:
        probed.restore()
        clear()

    of_plain, of_probed = timers(plain, plain.restore), timers(probed, emptied)
    return [(of_plain(), of_probed()) for _ in range(pairs)]


def _verify(backend: Backend, runnable: Runnable) -> None:
    """Raise VerificationFailed for a wrong output, UsageError where no output was written at all."""
    case, xp = runnable.case, backend.xp
    entries = verify_prepared(backend, runnable, seeds=(0,))
    if passed(entries):
        return
    names = [output.name for output in case.spec.outputs]
    runnable.reset(runnable.inputs)
    before: dict[str, Any] = {name: array.copy() for name, array in runnable.arrays(names).items()}
    runnable()
    pairs = [(array.reshape(-1), before[name].reshape(-1)) for name, array in runnable.arrays(names).items()]
    if all(bool((after.view(xp.uint8) == held.view(xp.uint8)).all()) for after, held in pairs):
        raise UsageError(
            f"{case.name}: the kernel stores nothing in its outputs, so the compiler may remove the work whose time "
            "its regions would show"
        )
    raise VerificationFailed(complaint(case, backend.name, entries))
