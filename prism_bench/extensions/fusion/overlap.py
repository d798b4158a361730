"""Copies and kernels at the same time: a problem in chunks on lanes of their own, and two kernels beside one another.

Every form of an experiment does the same work, and its results are compared bit by bit with those of the first form;
a form that differs has no time. Times are the host's, from the first call to the end of all work, forms in turn.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from prism_bench.backends import Backend
from prism_bench.backends.base import Fork
from prism_bench.case import Case
from prism_bench.errors import UsageError, VerificationFailed
from prism_bench.measure import shuffled

SAMPLES, WARM_UP = 15, 3


@dataclass(frozen=True)
class Form:
    """One way to do the work: `launches` and bytes copied each way of one call; a `part` is only a part of the work."""

    name: str
    launches: int
    copied_in: int
    copied_out: int
    call: Callable[[], None]
    part: bool = False


@dataclass(frozen=True)
class Row:
    """A form in the ledger, with the seconds of its samples; none where the backend has no device to time."""

    name: str
    launches: int
    copied_in: int
    copied_out: int
    part: bool
    seconds: tuple[float, ...]

    @property
    def median(self) -> float | None:
        return float(np.median(self.seconds)) if self.seconds else None


@dataclass(frozen=True)
class Overlap:
    """The ledger of one experiment: parts alone, then the whole work, the first whole one with nothing overlapped."""

    title: str
    rows: tuple[Row, ...]

    @property
    def floor(self) -> float | None:
        """Seconds of the longest part: perfect overlap takes no less."""
        return max((row.median for row in self.rows if row.part and row.seconds), default=None)

    @property
    def serial(self) -> Row:
        return next(row for row in self.rows if not row.part)

    def speedup(self, row: Row) -> float | None:
        """How many times faster than with nothing overlapped."""
        return self.serial.median / row.median if row.seconds else None

    def hidden(self, row: Row) -> float | None:
        """The share of what overlap could hide that it does hide."""
        if not row.seconds or self.floor is None or self.serial.median <= self.floor:
            return None
        return (self.serial.median - row.median) / (self.serial.median - self.floor)


class Chunks:
    """The same case on chunk after chunk of a problem in the host's memory: in, through the kernel, out again."""

    def __init__(self, backend: Backend, case: Case, chunks: int, lanes: int):
        if not 1 <= lanes <= chunks:
            raise UsageError(f"{chunks} chunks on {lanes} lanes: at least one lane, and no more than chunks")
        self._flow, self._stack, self._case = backend.flow(), ExitStack(), case
        drawn = [case.inputs(seed) for seed in range(chunks)]
        self._given = [{name: self._pinned(one.on(np)) for name, one in inputs.items()} for inputs in drawn]
        self._taken = [self._outputs() for _ in range(chunks)]
        self._lanes = [self._stack.enter_context(backend.prepare(case, drawn[0])) for _ in range(lanes)]
        self._launches = self._lanes[0].evidence().get("launches", 1)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._stack.close()

    @property
    def title(self) -> str:
        return f"{len(self._given)} chunks of {self._case.name} on {len(self._lanes)} lanes"

    def forms(self) -> list[Form]:
        """Copies in, kernels and copies out alone; all of it on one lane, and on all lanes."""
        count, runnable = len(self._given), self._lanes[0]
        into, out = (sum(a.nbytes for one in arrays for a in one.values()) for arrays in (self._given, self._taken))
        launches = count * self._launches
        return [
            Form("copies in", 0, into, 0, lambda: self._each(lambda i: self._put(i, runnable)), True),
            Form("kernels", launches, 0, 0, lambda: self._each(lambda i: runnable()), True),
            Form("copies out", 0, 0, out, lambda: self._each(lambda i: self._fetch(i, runnable)), True),
            Form("one lane", launches, into, out, lambda: self._each(lambda i: self._whole(i, runnable))),
            Form(f"{len(self._lanes)} lanes", launches, into, out, lambda: beside(self._flow, self._by_lane())),
        ]

    def results(self) -> list[np.ndarray]:
        """What came out, chunk by chunk."""
        return [array.copy() for one in self._taken for array in one.values()]

    def forget(self) -> None:
        """What stands in the results next was written anew."""
        for one in self._taken:
            for array in one.values():
                array.view("uint8")[...] = 0xA5

    def synchronize(self):
        self._flow.synchronize()

    def _outputs(self):
        outputs = self._case.spec.outputs
        return {one.name: self._flow.host_array(self._case.sizes.shape(one.name), one.dtype) for one in outputs}

    def _pinned(self, values):
        array = self._flow.host_array(values.shape, values.dtype)
        array[...] = values
        return array

    def _each(self, work):
        for chunk in range(len(self._given)):
            work(chunk)

    def _by_lane(self):
        count = len(self._lanes)
        return [lambda n=n: [self._whole(i, self._lanes[n]) for i in range(n, len(self._given), count)]
                for n in range(count)]  # fmt: skip

    def _whole(self, chunk, runnable):
        self._put(chunk, runnable)
        runnable()
        self._fetch(chunk, runnable)

    def _put(self, chunk, runnable):
        for name, values in self._given[chunk].items():
            runnable.put(name, values)

    def _fetch(self, chunk, runnable):
        for name, values in self._taken[chunk].items():
            runnable.fetch(name, values)


class Beside:
    """Several cases, each evaluated `rounds` times: one after the other, or on a lane of its own."""

    def __init__(self, backend: Backend, cases: Sequence[Case], rounds: int):
        self._in_graphs = backend.name == "cuda"
        self._flow, self._stack, self._cases = backend.flow(), ExitStack(), cases
        self._runnables = [self._stack.enter_context(backend.prepare(case, case.inputs())) for case in cases]
        self._rounds = rounds

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._stack.close()

    @property
    def title(self) -> str:
        how = ", as graphs" if self._in_graphs else ""
        return f"{' beside '.join(case.name for case in self._cases)}, {self._rounds} evaluations each{how}"

    def forms(self) -> list[Form]:
        """Each case alone; all in one lane, and each in its own."""
        lone = [lambda r=r: self._repeated(r) for r in self._runnables]
        counts = [self._rounds * r.evidence().get("launches", 1) for r in self._runnables]
        parts = [Form(case.kernel, count, 0, 0, self._graph([call]), True)
                 for case, count, call in zip(self._cases, counts, lone, strict=True)]  # fmt: skip
        together = lambda: [call() for call in lone]  # noqa: E731
        return [
            *parts,
            Form("one lane", sum(counts), 0, 0, self._graph([together])),
            Form(f"{len(lone)} lanes", sum(counts), 0, 0, self._graph(lone)),
        ]

    def results(self) -> list:
        """What came out, case by case."""
        found = []
        for case, runnable in zip(self._cases, self._runnables, strict=True):
            arrays = runnable.arrays(one.name for one in case.spec.outputs)
            found += [array.get() if hasattr(array, "get") else array.copy() for array in arrays.values()]
        return found

    def forget(self) -> None:
        """Outputs are poisoned, inputs laid out again."""
        for runnable in self._runnables:
            runnable.reset(runnable.inputs)

    def synchronize(self):
        self._flow.synchronize()

    def _repeated(self, runnable):
        for _ in range(self._rounds):
            runnable()

    def _graph(self, calls):
        """One graph of it where the backend has such: the host would else be the slower one."""

        def work():
            beside(self._flow, calls)

        if not self._in_graphs:
            return work
        work()  # what is loaded at the first launch is not loaded into a graph
        return self._flow.captured(work)


def beside(flow, calls: Sequence[Callable[[], object]]) -> None:
    """Enqueue each of the calls on a lane of its own; lane 0 goes on when all are done."""
    lanes = range(1, len(calls) + 1)
    with Fork(flow, lanes):
        for number, call in zip(lanes, calls, strict=True):
            with flow.lane(number):
                call()


def account(work: Chunks | Beside, timed: bool) -> Overlap:
    """The ledger of all forms of the work. VerificationFailed where a whole form gives other results than the first."""
    forms = work.forms()
    _verify(work, [form for form in forms if not form.part])
    seconds: dict[str, list[float]] = {form.name: [] for form in forms}
    for turn in range(WARM_UP + SAMPLES if timed else 0):
        for form in shuffled(forms, 0, turn):
            taken = _timed(work, form)
            if turn >= WARM_UP:
                seconds[form.name].append(taken)
    rows = (Row(f.name, f.launches, f.copied_in, f.copied_out, f.part, tuple(seconds[f.name])) for f in forms)
    return Overlap(work.title, tuple(rows))


def _verify(work, forms):
    expected = None
    for form in forms:
        work.forget()
        _timed(work, form)
        found = work.results()
        expected = expected or found
        if any(one.tobytes() != other.tobytes() for one, other in zip(expected, found, strict=True)):
            raise VerificationFailed(f"{work.title}: '{form.name}' gives other results than '{forms[0].name}'")


def _timed(work, form):
    work.synchronize()
    before = perf_counter()
    form.call()
    work.synchronize()
    return perf_counter() - before
