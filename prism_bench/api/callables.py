"""`prism_bench.benchmark` and `prism_bench.compare`: time any CuPy or PyTorch callable, and compare two."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from statistics import median
from typing import Any

from prism_bench import display
from prism_bench.analysis.compare.estimate import medians
from prism_bench.analysis.compare.verdict import RULES, Judgement, Verdict, VerdictRules, judged, pair_of
from prism_bench.errors import MeasurementInvalid, UsageError
from prism_bench.measure import ClockGate, Criterion, call_checks
from prism_bench.measure.call_checks import refuse_replaced
from prism_bench.record.measurement import Measurement, merged
from prism_bench.run.measuring import measure_metric
from prism_bench.units import change_range_text, change_text, rate_text, share_text, time_text

# Progress of long calls: a bar in a notebook and on a terminal, nothing in a pipe or a file.
#
# It is drawn only when a step begins: no thread draws while a launch is timed. A notebook's bar is plain HTML, which is
# updated in place, so that no widget package is needed. PRISM_BENCH_PROGRESS=0 turns the bar off.

Step = Callable[[str], None]  # begins a step with this description
SWITCH = "PRISM_BENCH_PROGRESS"


@contextmanager
def shown_progress(title: str, steps: int) -> Iterator[Step]:
    """Yield a function that draws the beginning of each of `steps` steps; the bar disappears when the block ends."""
    draw, clear = _canvas(title)
    begun = 0

    def step(description: str) -> None:
        nonlocal begun
        draw(min(begun, steps), steps, description)
        begun += 1

    try:
        yield step
    finally:
        if begun:
            clear()


_Canvas = tuple[Callable[[int, int, str], None], Callable[[], None]]


def _canvas(title: str) -> _Canvas:
    """Return the functions that draw and clear a bar here."""
    if os.environ.get(SWITCH) != "0":
        ipython = sys.modules.get("IPython")  # loaded inside a notebook's kernel
        shell = ipython.get_ipython() if ipython else None
        display = getattr(sys.modules.get("IPython.display"), "display", None) if hasattr(shell, "kernel") else None
        if display is not None:
            return _in_notebook(title, display)
        if sys.stderr is not None and sys.stderr.isatty():
            return _on_terminal(title)
    return lambda done, total, description: None, lambda: None


def _in_notebook(title: str, display: Any) -> _Canvas:
    handle: list[Any] = []

    def show(html: str) -> None:
        bundle = {"text/html": html, "text/plain": ""}
        if handle:
            handle[0].update(bundle, raw=True)
        else:
            handle.append(display(bundle, raw=True, display_id=True))

    def draw(done: int, total: int, description: str) -> None:
        show(f'<div>{escape(title)} <progress value="{done}" max="{total}"></progress> {escape(description)}</div>')

    return draw, lambda: show("")


def _on_terminal(title: str) -> _Canvas:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[title]}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    console = Console(stderr=True, markup=False, emoji=False)
    bar = Progress(
        *columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    )
    job = bar.add_task("", total=None, title=title)

    def draw(done: int, total: int, description: str) -> None:
        bar.start()
        bar.update(job, description=description, completed=done, total=total)
        bar.refresh()

    return draw, bar.stop


# Measurement of a callable with cross-checks: inspected, timed, timed again the other way, its claims checked.

CRITERION = Criterion(precision=0.004, min_samples=24, max_samples=60, seconds=1.0)
MORE = Criterion(precision=0.0, min_samples=60, max_samples=60, seconds=1.0)  # after a single odd sample
_CHECKED_SAMPLES = 5
_WARM_UP = 3  # calls in which libraries compile, choose and record; they are not checked
STEPS = 4  # of a measurement: warm-up, inspection, times, checks
_NEAR_OVERHEAD = 1.5  # times an empty kernel


@dataclass(frozen=True)
class TimedCallable:
    """A callable, the metric to time it by, its name, and the claimed bytes and operations of one call."""

    function: Callable[[], object]
    metric: str
    name: str
    bytes: int | None = None
    flops: int | None = None


def measured(backend: Any, library: str, subject: TimedCallable, step: Step = lambda description: None) -> Measurement:
    """Measure a callable, and call `step` before each of the STEPS.

    Raise MeasurementInvalid if it cannot be timed honestly, or its time cannot be true.
    """
    with backend.harness.ordinary_cache() as cache:
        step("warming up")
        for _ in range(_WARM_UP):
            subject.function()
        measurement = _Checked(backend, library, subject).measurement(step)
        if cache.is_used:
            raise MeasurementInvalid("the call sets a part of L2 aside, so caches cannot be cleared")
    refuse_replaced()
    return measurement


class _Checked:
    """Checked measurement of one callable on one backend."""

    def __init__(self, backend: Any, library: str, subject: TimedCallable) -> None:
        self._backend, self._subject = backend, subject
        self._harness = backend.harness
        self._timers = backend.callable_timers(subject.function, library)
        self._bounds = backend.bounds()

    def measurement(self, step: Step) -> Measurement:
        """Return the measurement with its notes; raise MeasurementInvalid if a check fails."""
        step("inspecting")
        subject, bounds = self._subject, self._bounds
        inspector = self._backend.inspector()
        inspection, floors = inspector.inspect(subject.function), inspector.floors()
        step("timing")
        timed = self._timed(subject.metric)
        seconds = timed.median or 0.0
        notes = [*inspection.notes, *self._levels(timed.samples)]
        step("checking")
        cold, problem = self._cold(seconds, floors)
        _refuse(call_checks.at_overhead(cold, floors.nothing, floors.launch))
        _refuse(problem)
        held, cache_rate = bounds.l2_bytes if subject.metric == "hot_time" else 0, bounds.cache_bandwidth(timed.clock)
        _refuse(call_checks.too_many_bytes(subject.bytes, seconds, bounds.bus, held, cache_rate))
        _refuse(call_checks.too_many_operations(subject.flops, seconds, bounds.operations(timed.clock)))
        if cold < _NEAR_OVERHEAD * floors.launch:
            notes.append(f"near launch overhead: an empty kernel takes {time_text(floors.launch)}")
        return replace(timed, notes=(*timed.notes, *notes))

    def _timed(self, metric: str) -> Measurement:
        """Return samples of the metric, more after a single odd sample, which may belong to a second level."""
        once = self._timers[metric]()
        timed = measure_metric(metric, self._subject.name, once, CRITERION, ClockGate())[0]
        if call_checks.levels(timed.samples) or not call_checks.has_odd_sample(timed.samples):
            return timed
        more = measure_metric(metric, self._subject.name, once, MORE, ClockGate())[0]
        clocks = ((*timed.clocks[0], *more.clocks[0]),) if timed.clocks and more.clocks else timed.clocks
        return replace(timed, processes=((*timed.samples, *more.samples),), clocks=clocks)

    def _cold(self, seconds: float, floors: Any) -> tuple[float, str | None]:
        """Return the cold time, and why it contradicts the time of the other kind, or None."""
        warming = self._bounds.l2_bytes / self._bounds.bus if self._bounds.bus else 0.0
        if self._subject.metric == "cold_time":
            once = partial(self._harness.timed, self._subject.function, cold=False)
            warm = median(once().seconds for _ in range(_CHECKED_SAMPLES))
            return seconds, call_checks.less_work_when_cold(seconds, warm, warming)
        single = self._timed("cold_time")  # a graph holds many calls, and its time is their mean
        self._levels(single.samples)
        cold = single.median or 0.0
        problem = call_checks.less_work_when_hot(cold, seconds, floors.launch, warming)
        return cold, problem or call_checks.less_work_when_cold(cold, seconds, warming)

    def _levels(self, samples: Sequence[float]) -> list[str]:
        """Return a note if samples have two levels; raise MeasurementInvalid if those are two kinds of work."""
        levels = call_checks.levels(samples)
        if levels and levels.is_other_work:
            raise MeasurementInvalid(
                f"{levels}: the call does not do the same work every time, or something else works on the device"
            )
        return [str(levels)] if levels else []


def _refuse(problem: str | None) -> None:
    if problem:
        raise MeasurementInvalid(problem)


# `prism_bench.benchmark`: time any CuPy or PyTorch callable in one line.

MODES = {"cold": "cold_time", "hot": "hot_time"}


@dataclass(frozen=True, repr=False)
class Benchmark(Measurement):
    """Measurement with the bytes and operations of one call."""

    bytes: int | None = None
    flops: int | None = None

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second, or None without `bytes`."""
        return self.bytes / self.median if self.bytes and self.median else None

    @property
    def flop_rate(self) -> float | None:
        """Operations per second, or None without `flops`."""
        return self.flops / self.median if self.flops and self.median else None

    def __str__(self) -> str:
        rates = [rate_text(self.bandwidth, "B/s")] if self.bandwidth else []
        rates += [rate_text(self.flop_rate, "FLOP/s")] if self.flop_rate else []
        return super().__str__() + "".join(f", {rate}" for rate in rates) + "".join(f"; {note}" for note in self.notes)


def benchmark(
    function: Callable[[], object],
    *,
    mode: str = "cold",
    stream: Any = None,
    bytes: int | None = None,
    flops: int | None = None,
    name: str | None = None,
) -> Benchmark:
    """Time a callable without arguments that works on the current CUDA stream of CuPy or PyTorch.

    `mode` is `cold` (caches cleared before each call) or `hot` (replay of a CUDA graph of many calls). `stream` is
    a CuPy or PyTorch stream to time on; by default a new stream is current while the callable runs. `bytes` and `flops`
    of one call, if given, make rates. Times are in seconds.

    The callable runs about a hundred times. A part of L2 that is set aside is given back meanwhile, and set aside
    again at the end. Raises UsageError for a bad mode, BackendUnavailable without a GPU, and MeasurementInvalid if
    the call cannot be timed honestly: it enqueues nothing, waits for the device, works on another stream or after it
    has returned, does less work in some calls than in others (one of ten, in a graph, or with cold caches), claims
    more bytes or operations than the device can do, or a function of the clock was replaced. `notes` of the result
    name other observations.
    """
    if mode not in MODES:
        raise UsageError(f"mode is '{mode}'; it is one of {', '.join(MODES)}")
    if not callable(function):
        raise UsageError(f"benchmark takes a callable without arguments, not {type(function).__name__}")
    from prism_bench.backends.cuda.backend import borrowed_backend

    subject = TimedCallable(function, MODES[mode], name or getattr(function, "__name__", "callable"), bytes, flops)
    with borrowed_backend(stream) as (backend, library), shown_progress("benchmark", STEPS) as step:
        measurement = measured(backend, library, subject, step)
    return Benchmark(**{**vars(measurement), "bytes": bytes, "flops": flops})


# `prism_bench.compare`: verdict on two callables from interleaved rounds.

_LEAST_ROUNDS = 3
_Side = Callable[[], Measurement]


@dataclass(frozen=True, repr=False)
class CallableComparison:
    """The second callable against the first: `b` is slower, faster, the same, or undecided.

    `a` and `b` are the measurements of both, one group of samples per round.
    """

    a: Measurement
    b: Measurement
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        """Verdict on `b` compared with `a`: slower, faster, same or inconclusive."""
        return self.judgement.verdict

    @property
    def ratio(self) -> float:
        """The time of `b` over that of `a`: below 1 if `b` is faster."""
        return self.judgement.estimate.ratio

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of `ratio`."""
        return self.judgement.estimate.interval()

    def __str__(self) -> str:
        low, high = self.interval
        times = " against ".join(time_text(medians(side.processes).typical) for side in (self.b, self.a))  # paired
        text = f"{self.b.subject} is {_WORDS[self.verdict]} {self.a.subject}: {times}, {change_text(self.ratio)}"
        text += f" ({change_range_text(low, high)}), noise floor {share_text(self.judgement.floor)}"
        return text + (f"; {self.judgement.reason}" if self.judgement.reason else "")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def _repr_html_(self) -> str:
        groups = [(side.subject, side.samples) for side in (self.a, self.b)]
        every = (*self.a.samples, *self.b.samples)
        return display.view(str(self), display.dots(groups, (time_text(min(every)), time_text(max(every)))))


_WORDS: dict[Verdict, str] = {
    "slower": "slower than",
    "faster": "faster than",
    "same": "as fast as",
    "inconclusive": "not clearly different from",
}


def compare(
    first: Callable[[], object],
    second: Callable[[], object],
    *,
    mode: str = "cold",
    rounds: int = 8,
    stream: Any = None,
) -> CallableComparison:
    """Time two callables without arguments alternately on the current CUDA stream, and return a verdict.

    Each round measures both, in the order first, second, second, first over two rounds, with every check of
    `benchmark`. `mode` is `cold` or `hot`, `stream` as in `benchmark`. All rounds are in this process: differences
    between processes, such as the placement of memory, are not in the interval. A notebook and a terminal show a bar.

    Raises UsageError for a bad mode, fewer than 3 rounds or an argument that is not callable, BackendUnavailable
    without a GPU, and MeasurementInvalid if a call cannot be timed honestly.
    """
    functions = first, second
    for function in functions:
        if not callable(function):
            raise UsageError(f"compare takes two callables without arguments, not {type(function).__name__}")
    if mode not in MODES:
        raise UsageError(f"mode is '{mode}'; it is one of {', '.join(MODES)}")
    if rounds < _LEAST_ROUNDS:
        raise UsageError(f"rounds is {rounds}; a spread between rounds needs at least {_LEAST_ROUNDS}")
    from prism_bench.backends.cuda.backend import borrowed_backend

    names = [getattr(function, "__name__", "") for function in functions]
    if "" in names or "<lambda>" in names or names[0] == names[1]:
        names = ["first", "second"]
    with borrowed_backend(stream) as (backend, library):
        subjects = [TimedCallable(function, MODES[mode], name) for function, name in zip(functions, names, strict=True)]
        sides = [partial(measured, backend, library, subject) for subject in subjects]
        with shown_progress("compare", 2 * rounds) as step:
            a, b = alternated(sides[0], sides[1], rounds, step)
    return compared(a, b)


def alternated(
    first: _Side, second: _Side, rounds: int, step: Step = lambda description: None
) -> tuple[Measurement, Measurement]:
    """Return both sides' measurements of all rounds; every other round begins with the second side.

    `step` is called before each measurement.
    """
    parts: tuple[list[Measurement], list[Measurement]] = ([], [])
    for number in range(rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            step(f"round {number + 1} of {rounds}")
            parts[side].append((first, second)[side]())
    return merged(parts[0]), merged(parts[1])


def compared(a: Measurement, b: Measurement, rules: VerdictRules = RULES) -> CallableComparison:
    """Return the verdict on two measurements of one metric."""
    return CallableComparison(a, b, judged([pair_of(a, b)], rules)[0])
