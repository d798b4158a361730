"""Copies and kernels at the same time: a problem in chunks on several lanes, and several kernels side by side.

Every form of an experiment does the same work, and its results are compared bit by bit with the first form's results;
a form that differs has no time. Times are the host's, from the first call to the end of all work, forms in turn.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Self

import numpy as np

from prism_bench.backends import Backend
from prism_bench.backends.base import Flow, Fork, Runnable
from prism_bench.errors import UsageError, VerificationFailed
from prism_bench.measure import shuffled
from prism_bench.spec.case import Case
from prism_bench.units import count_text

SAMPLES, _WARM_UP = 15, 3
HostArray = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class OverlapForm:
    """One way to do the work: `launches` and bytes copied each way of one call; a `part` is only a part of the work."""

    name: str
    launches: int
    copied_in: int
    copied_out: int
    call: Callable[[], object]
    part: bool = False


@dataclass(frozen=True)
class OverlapRow:
    """A form in the ledger, with the seconds of its samples; empty if the backend has no device to time."""

    name: str
    launches: int
    copied_in: int
    copied_out: int
    part: bool
    seconds: tuple[float, ...]

    @property
    def median(self) -> float | None:
        """The median of the samples in seconds."""
        return float(np.median(self.seconds)) if self.seconds else None


@dataclass(frozen=True)
class OverlapLedger:
    """The ledger of one experiment: each part by itself, then forms of the whole work, the first without overlap."""

    title: str
    rows: tuple[OverlapRow, ...]

    @property
    def longest_part(self) -> float | None:
        """Seconds of the longest part: perfect overlap takes no less."""
        return max((row.median for row in self.rows if row.part and row.median is not None), default=None)

    @property
    def serial(self) -> OverlapRow:
        """The form with nothing overlapped."""
        return next(row for row in self.rows if not row.part)

    def speedup(self, row: OverlapRow) -> float | None:
        """Return the time without overlap over the time of the row."""
        serial, seconds = self.serial.median, row.median
        return None if serial is None or seconds is None else serial / seconds

    def hidden(self, row: OverlapRow) -> float | None:
        """Return the hidden time as a share of the time that perfect overlap would hide."""
        serial, seconds, least = self.serial.median, row.median, self.longest_part
        if seconds is None or least is None or serial is None or serial <= least:
            return None
        return (serial - seconds) / (serial - least)


@dataclass(frozen=True)
class _Chunk:
    """Inputs and outputs of one chunk by name, in the host's memory."""

    inputs: dict[str, HostArray]
    outputs: dict[str, HostArray]

    def put(self, runnable: Runnable) -> None:
        """Copy the inputs to the device."""
        for name, values in self.inputs.items():
            runnable.put(name, values)

    def fetch(self, runnable: Runnable) -> None:
        """Copy the outputs back."""
        for name, values in self.outputs.items():
            runnable.fetch(name, values)

    def whole(self, runnable: Runnable) -> None:
        """Copy in, launch, copy out."""
        self.put(runnable)
        runnable()
        self.fetch(runnable)


class Chunks:
    """The same case on chunk after chunk of a problem in the host's memory: in, through the kernel, out again."""

    def __init__(self, backend: Backend, case: Case, chunks: int, lanes: int) -> None:
        if not 1 <= lanes <= chunks:
            raise UsageError(
                f"{count_text(chunks, 'chunk')} on {count_text(lanes, 'lane')}: "
                "at least one lane, and no more than chunks"
            )
        self._flow, self._stack, self._case = backend.flow(), ExitStack(), case
        drawn = [case.inputs(seed) for seed in range(chunks)]
        host_inputs = [{name: self._pinned(array.on(np)) for name, array in inputs.items()} for inputs in drawn]
        self._chunks = [_Chunk(inputs, self._outputs()) for inputs in host_inputs]
        self._lanes = [self._stack.enter_context(backend.prepare(case, drawn[0])) for _ in range(lanes)]
        self._launches = self._lanes[0].evidence().get("launches", 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    @property
    def title(self) -> str:
        """A text about the work."""
        return (
            f"{count_text(len(self._chunks), 'chunk')} of {self._case.name} on {count_text(len(self._lanes), 'lane')}"
        )

    def forms(self) -> list[OverlapForm]:
        """Return copies in, kernels and copies out by themselves; then the whole work on one lane, and on all lanes."""
        runnable, launches = self._lanes[0], len(self._chunks) * self._launches
        into = sum(array.nbytes for chunk in self._chunks for array in chunk.inputs.values())
        out = sum(array.nbytes for chunk in self._chunks for array in chunk.outputs.values())
        return [
            OverlapForm("copies in", 0, into, 0, lambda: self._each(lambda chunk: chunk.put(runnable)), True),
            OverlapForm("kernels", launches, 0, 0, lambda: self._each(lambda chunk: runnable()), True),
            OverlapForm("copies out", 0, 0, out, lambda: self._each(lambda chunk: chunk.fetch(runnable)), True),
            OverlapForm("one lane", launches, into, out, lambda: self._each(lambda chunk: chunk.whole(runnable))),
            OverlapForm(count_text(len(self._lanes), "lane"), launches, into, out, self._on_all_lanes),
        ]

    def results(self) -> list[HostArray]:
        """Return the outputs, chunk by chunk."""
        return [array.copy() for chunk in self._chunks for array in chunk.outputs.values()]

    def forget(self) -> None:
        """Fill the outputs with a poison, so that the next results were written anew."""
        for chunk in self._chunks:
            for array in chunk.outputs.values():
                array.view("uint8")[...] = 0xA5

    def synchronize(self) -> None:
        self._flow.synchronize()

    def _outputs(self) -> dict[str, HostArray]:
        outputs = self._case.spec.outputs
        return {
            output.name: self._flow.host_array(self._case.sizes.shape(output.name), output.storage)
            for output in outputs
        }

    def _pinned(self, values: HostArray) -> HostArray:
        array = self._flow.host_array(values.shape, values.dtype)
        array[...] = values
        return array

    def _each(self, work: Callable[[_Chunk], object]) -> None:
        for chunk in self._chunks:
            work(chunk)

    def _on_all_lanes(self) -> None:
        """Give the chunks to the lanes in turn."""
        on_lanes(self._flow, [partial(self._on_lane, number) for number in range(len(self._lanes))])

    def _on_lane(self, number: int) -> None:
        for chunk in self._chunks[number :: len(self._lanes)]:
            chunk.whole(self._lanes[number])


class SideBySide:
    """Several cases, each evaluated `rounds` times: one after the other, or each on another lane."""

    def __init__(self, backend: Backend, cases: Sequence[Case], rounds: int) -> None:
        self._in_graphs = backend.name == "cuda"
        self._flow, self._stack, self._cases = backend.flow(), ExitStack(), cases
        self._runnables = [self._stack.enter_context(backend.prepare(case, case.inputs())) for case in cases]
        self._rounds = rounds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    @property
    def title(self) -> str:
        """A text about the work."""
        how = ", as graphs" if self._in_graphs else ""
        return (
            f"{' next to '.join(case.name for case in self._cases)}, {count_text(self._rounds, 'evaluation')} each{how}"
        )

    def forms(self) -> list[OverlapForm]:
        """Return each case by itself; then all cases in one lane, and each in another lane."""
        lone = [partial(self._repeated, runnable) for runnable in self._runnables]
        counts = [self._rounds * r.evidence().get("launches", 1) for r in self._runnables]
        parts = [
            OverlapForm(case.kernel, count, 0, 0, self._graph([call]), True)
            for case, count, call in zip(self._cases, counts, lone, strict=True)
        ]
        together = lambda: [call() for call in lone]  # noqa: E731
        return [
            *parts,
            OverlapForm("one lane", sum(counts), 0, 0, self._graph([together])),
            OverlapForm(count_text(len(lone), "lane"), sum(counts), 0, 0, self._graph(lone)),
        ]

    def results(self) -> list[HostArray]:
        """Return the outputs, case by case."""
        outputs: list[HostArray] = []
        for case, runnable in zip(self._cases, self._runnables, strict=True):
            arrays = runnable.arrays(output.name for output in case.spec.outputs)
            outputs += [array.get() if hasattr(array, "get") else array.copy() for array in arrays.values()]
        return outputs

    def forget(self) -> None:
        """Poison the outputs and lay the inputs out again."""
        for runnable in self._runnables:
            runnable.reset(runnable.inputs)

    def synchronize(self) -> None:
        self._flow.synchronize()

    def _repeated(self, runnable: Runnable) -> None:
        for _ in range(self._rounds):
            runnable()

    def _graph(self, calls: Sequence[Callable[[], object]]) -> Callable[[], None]:
        """Return one graph of the calls if the backend has graphs: else the host would be slower than the device."""

        def work() -> None:
            on_lanes(self._flow, calls)

        if not self._in_graphs:
            return work
        work()  # the first launch loads code, which must not happen during the capture
        return self._flow.captured(work)


def on_lanes(flow: Flow, calls: Sequence[Callable[[], object]]) -> None:
    """Enqueue each of the calls on another lane; lane 0 goes on when all are done."""
    lanes = range(1, len(calls) + 1)
    with Fork(flow, lanes):
        for number, call in zip(lanes, calls, strict=True):
            with flow.lane(number):
                call()


def account(work: Chunks | SideBySide, timed: bool) -> OverlapLedger:
    """Return the ledger of all forms; VerificationFailed if a whole form gives other results than the first."""
    forms = work.forms()
    _verify(work, [form for form in forms if not form.part])
    seconds: dict[str, list[float]] = {form.name: [] for form in forms}
    for turn in range(_WARM_UP + SAMPLES if timed else 0):
        for form in shuffled(forms, 0, turn):
            duration = _timed(work, form)
            if turn >= _WARM_UP:
                seconds[form.name].append(duration)
    rows = (OverlapRow(f.name, f.launches, f.copied_in, f.copied_out, f.part, tuple(seconds[f.name])) for f in forms)
    return OverlapLedger(work.title, tuple(rows))


def _verify(work: Chunks | SideBySide, forms: Sequence[OverlapForm]) -> None:
    expected: list[HostArray] = []
    for form in forms:
        work.forget()
        _timed(work, form)
        results = work.results()
        expected = expected or results
        if any(values.tobytes() != other.tobytes() for values, other in zip(expected, results, strict=True)):
            raise VerificationFailed(f"{work.title}: '{form.name}' gives other results than '{forms[0].name}'")


def _timed(work: Chunks | SideBySide, form: OverlapForm) -> float:
    work.synchronize()
    before = perf_counter()
    form.call()
    work.synchronize()
    return perf_counter() - before
