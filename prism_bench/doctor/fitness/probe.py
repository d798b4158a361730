"""Noise probe: cold launches of a short and of a memory-bound kernel in turn, every one of them kept."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from time import perf_counter
from typing import Protocol

from prism_bench.backends import Backend
from prism_bench.catalogue.importer import catalogue_package, module_name
from prism_bench.catalogue.listing import timed_cases
from prism_bench.catalogue.load import load_spec
from prism_bench.doctor.fitness.facts import Kind, ProbedKernel
from prism_bench.errors import MeasurementInvalid
from prism_bench.io.files import default_folder
from prism_bench.measure.limits import peaks_of
from prism_bench.record.measurement import Sample
from prism_bench.spec.case import Case

PROBED: Mapping[str, Kind] = {"copy[n=100000]": "small", "copy[n=67108864]": "bandwidth"}
SECONDS = 10.0
BLOCK = 10  # launches of one kernel before the other's turn
MOST_BLOCKS = 2000
_WARM_UP = 5

Progress = Callable[[float], object]  # is called with the share of the probe that is done


class NoiseProbe(Protocol):
    """Whatever launches kernels for so many seconds and returns all of their times."""

    def __call__(self, seconds: float, progress: Progress) -> Sequence[ProbedKernel]:
        """Return the launches of each kernel."""
        ...


class ColdProbe:
    """The probe on a backend: cold launches of `cases`, each of its kind, block by block in turn.

    MeasurementInvalid where the backend has no cold times.
    """

    def __init__(self, backend: Backend, cases: Mapping[Case, Kind], clock: Callable[[], float] = perf_counter) -> None:
        self._backend, self._cases, self._clock = backend, cases, clock

    def __call__(self, seconds: float, progress: Progress) -> Sequence[ProbedKernel]:
        """Return the launches of each kernel, at least one block of each."""
        with ExitStack() as stack:
            timers = [self._timer(stack, case) for case in self._cases]
            taken = self._rounds(timers, seconds, progress)
        peak = peaks_of(self._backend.facts()).get("bandwidth")
        return [
            ProbedKernel(case.name, kind, tuple(samples), case.sizes.bytes_moved, peak)
            for (case, kind), samples in zip(self._cases.items(), taken, strict=True)
        ]

    def _timer(self, stack: ExitStack, case: Case) -> Callable[[], Sample]:
        """Return what takes one cold sample of the case, warmed up."""
        runnable = stack.enter_context(self._backend.prepare(case, case.inputs()))
        factory = runnable.timers().get("cold_time")
        if factory is None:
            raise MeasurementInvalid(f"backend {self._backend.name} takes no cold times")
        once = factory()
        for _ in range(_WARM_UP):
            once()
        return once

    def _rounds(self, timers: Sequence[Callable[[], Sample]], seconds: float, progress: Progress) -> list[list[Sample]]:
        taken: list[list[Sample]] = [[] for _ in timers]
        began = self._clock()
        for done in range(MOST_BLOCKS):
            for once, samples in zip(timers, taken, strict=True):
                samples += [once() for _ in range(BLOCK)]
            share = max((self._clock() - began) / seconds, (done + 1) / MOST_BLOCKS)
            progress(min(1.0, share))
            if share >= 1.0:
                break
        return taken


def probed_cases() -> Iterator[tuple[Case, Kind]]:
    """Yield the bundled cases that the probe launches, with their kinds; no other spec is loaded."""
    root = default_folder()
    path = root / "machine" / "copy.py"
    spec = load_spec(path, module_name(catalogue_package(root), root, path))
    cases = {case.name: case for case in timed_cases(spec, None)}
    for name, kind in PROBED.items():
        yield cases[name], kind
