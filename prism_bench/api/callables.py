"""`prism_bench.benchmark` and `prism_bench.compare`: time any CuPy or PyTorch callable, or compare two of them."""

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
from prism_bench.units import rate_text, share_text, time_text

# Progress of the Python API's long calls: a bar in a notebook and on a terminal, nothing in a pipe or a file.
#
# It is drawn when a step is done and at no other time: no thread draws while a launch is timed. A notebook's bar is
# plain HTML, which is updated in place, so that no widget package is needed. PRISM_BENCH_PROGRESS=0 turns all of it
# off.

Step = Callable[[str], None]  # a step begins, described in a few words
SWITCH = "PRISM_BENCH_PROGRESS"


@contextmanager
def shown_progress(title: str, steps: int) -> Iterator[Step]:
    """Yield a function that draws the beginning of each of `steps` steps; the bar goes when the block ends."""
    draw, clear = _canvas(title)
    begun = 0

    def step(words: str) -> None:
        nonlocal begun
        draw(min(begun, steps), steps, words)
        begun += 1

    try:
        yield step
    finally:
        if begun:
            clear()


_Canvas = tuple[Callable[[int, int, str], None], Callable[[], None]]


def _canvas(title: str) -> _Canvas:
    """Return what draws a bar here and what clears it."""
    if os.environ.get(SWITCH) != "0":
        display = _notebook_display()
        if display is not None:
            return _in_notebook(title, display)
        if sys.stderr is not None and sys.stderr.isatty():
            return _on_terminal(title)
    return lambda done, total, words: None, lambda: None


def _notebook_display() -> Any:
    """Return IPython's `display` inside a notebook's kernel; None elsewhere. It imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(sys.modules.get("IPython.display"), "display", None) if hasattr(shell, "kernel") else None


def _in_notebook(title: str, display: Any) -> _Canvas:
    handle: list[Any] = []

    def show(html: str) -> None:
        bundle = {"text/html": html, "text/plain": ""}
        if handle:
            handle[0].update(bundle, raw=True)
        else:
            handle.append(display(bundle, raw=True, display_id=True))

    def draw(done: int, total: int, words: str) -> None:
        show(f'<div>{escape(title)} <progress value="{done}" max="{total}"></progress> {escape(words)}</div>')

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

    def draw(done: int, total: int, words: str) -> None:
        bar.start()
        bar.update(job, description=words, completed=done, total=total)
        bar.refresh()

    return draw, bar.stop


# A callable measured and cross-checked: inspected, timed, timed again the other way, its claims checked.

CRITERION = Criterion(precision=0.004, min_samples=24, max_samples=60, seconds=1.0)
MORE = Criterion(precision=0.0, min_samples=60, max_samples=60, seconds=1.0)  # where one sample is odd
_CHECKED_SAMPLES = 5
_WARM_UP = 3  # calls in which libraries compile, choose and record; none of them is looked at
STEPS = 4  # of a measurement: calls of the callable to warm up, its inspection, its times, the checks of these
_NEAR_OVERHEAD = 1.5  # times an empty kernel


@dataclass(frozen=True)
class TimedCallable:
    """A callable, the metric to time it by, its name, and the bytes and operations that one call is claimed to take."""

    function: Callable[[], object]
    metric: str
    name: str
    bytes: int | None = None
    flops: int | None = None


def measured(backend: Any, library: str, subject: TimedCallable, step: Step = lambda words: None) -> Measurement:
    """Measure a callable, and call `step` before each of the STEPS of that.

    MeasurementInvalid where it cannot be timed honestly, or its time cannot be true.
    """
    with backend.harness.ordinary_cache() as cache:
        step("warming up")
        for _ in range(_WARM_UP):
            subject.function()
        found = _Checked(backend, library, subject).measurement(step)
        if cache.is_used:
            raise MeasurementInvalid("the call sets a part of L2 aside, so caches cannot be cleared")
    refuse_replaced()
    return found


class _Checked:
    """One callable on one backend."""

    def __init__(self, backend: Any, library: str, subject: TimedCallable) -> None:
        self._backend, self._subject = backend, subject
        self._harness = backend.harness
        self._timers = backend.callable_timers(subject.function, library)
        self._bounds = backend.bounds()

    def measurement(self, step: Step) -> Measurement:
        """Return the measurement with its notes; MeasurementInvalid where a check fails."""
        step("inspecting")
        inspector = self._backend.inspector()
        inspection, floors = inspector.inspect(self._subject.function), inspector.floors()
        step("timing")
        found = self._timed(self._subject.metric)
        notes = [*inspection.notes, *self._levels(found.samples)]
        step("checking")
        cold, problem = self._compared(found.median or 0.0, floors)
        _refuse(call_checks.at_overhead(cold, floors.nothing, floors.launch))
        _refuse(problem)
        self._refuse_rates(found)
        if cold < _NEAR_OVERHEAD * floors.launch:
            notes.append(f"near launch overhead: an empty kernel takes {time_text(floors.launch)}")
        return replace(found, notes=(*found.notes, *notes))

    def _timed(self, metric: str) -> Measurement:
        """Return samples of the metric, more where a single one is odd: it may be alone, or of a second level."""
        once = self._timers[metric]()
        found = measure_metric(metric, self._subject.name, once, CRITERION, ClockGate())[0]
        if call_checks.levels(found.samples) or not call_checks.has_odd_sample(found.samples):
            return found
        more = measure_metric(metric, self._subject.name, once, MORE, ClockGate())[0]
        clocks = ((*found.clocks[0], *more.clocks[0]),) if found.clocks and more.clocks else found.clocks
        return replace(found, processes=((*found.samples, *more.samples),), clocks=clocks)

    def _compared(self, seconds: float, floors: Any) -> tuple[float, str | None]:
        """Return the cold time, and why the other kind of time does not go with it."""
        warming = self._bounds.l2_bytes / self._bounds.bus if self._bounds.bus else 0.0
        if self._subject.metric == "cold_time":
            once = partial(self._harness.timed, self._subject.function, cold=False)
            warm = median(once().seconds for _ in range(_CHECKED_SAMPLES))
            return seconds, call_checks.less_work_when_cold(seconds, warm, warming)
        alone = self._timed("cold_time")  # a graph holds many calls, and its time is their mean
        self._levels(alone.samples)
        cold = alone.median or 0.0
        problem = call_checks.less_work_when_hot(cold, seconds, floors.launch, warming)
        return cold, problem or call_checks.less_work_when_cold(cold, seconds, warming)

    def _levels(self, samples: Sequence[float]) -> list[str]:
        """Return a note where samples have two levels; MeasurementInvalid where those are two kinds of work."""
        found = call_checks.levels(samples)
        if found and found.is_other_work:
            raise MeasurementInvalid(
                f"{found}: the call does not do the same work every time, or something else works on the device"
            )
        return [str(found)] if found else []

    def _refuse_rates(self, found: Measurement) -> None:
        bounds, subject, seconds = self._bounds, self._subject, found.median or 0.0
        held = bounds.l2_bytes if subject.metric == "hot_time" else 0
        _refuse(
            call_checks.too_many_bytes(subject.bytes, seconds, bounds.bus, held, bounds.cache_bandwidth(found.clock))
        )
        _refuse(call_checks.too_many_operations(subject.flops, seconds, bounds.operations(found.clock)))


def _refuse(problem: str | None) -> None:
    if problem:
        raise MeasurementInvalid(problem)


# `prism_bench.benchmark`: time any CuPy or PyTorch callable in one line.

MODES = {"cold": "cold_time", "hot": "hot_time"}


@dataclass(frozen=True, repr=False)
class Benchmark(Measurement):
    """A measurement that knows the bytes and operations behind it."""

    bytes: int | None = None
    flops: int | None = None

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second, where the bytes were given."""
        return self.bytes / self.median if self.bytes and self.median else None

    @property
    def flop_rate(self) -> float | None:
        """Operations per second, where they were given."""
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
    a CuPy or PyTorch stream to time on; by default a new one is made current while the callable runs. `bytes` and
    `flops` of one call, where given, make rates. Seconds inside.

    The callable runs about a hundred times. A part of L2 that is set aside is given back meanwhile, and set aside
    again at the end. Raises UsageError for a bad mode, BackendUnavailable without a GPU, and MeasurementInvalid where
    the call cannot be timed honestly: it enqueues nothing, waits for the device, works on another stream or after it
    has returned, does less work in some calls than in others (one of ten, in a graph, or with cold caches), claims
    more bytes or operations than the device can do, or a function of the clock was replaced. `notes` of the result
    name what else was seen.
    """
    if mode not in MODES:
        raise UsageError(f"mode is '{mode}'; it is one of {', '.join(MODES)}")
    if not callable(function):
        raise UsageError(f"benchmark takes a callable without arguments, not {type(function).__name__}")
    from prism_bench.backends.cuda.backend import borrowed_backend

    subject = TimedCallable(function, MODES[mode], name or getattr(function, "__name__", "callable"), bytes, flops)
    with borrowed_backend(stream) as (backend, library), shown_progress("benchmark", STEPS) as step:
        found = measured(backend, library, subject, step)
    return Benchmark(**{**vars(found), "bytes": bytes, "flops": flops})


# `prism_bench.compare`: is one callable faster than another? Interleaved rounds, one verdict.

_LEAST_ROUNDS = 3
_Side = Callable[[], Measurement]


@dataclass(frozen=True, repr=False)
class CallableComparison:
    """The second callable against the first: `b` was called slower, faster, the same, or nothing is decided.

    `a` and `b` are the measurements of both, one group of samples per round.
    """

    a: Measurement
    b: Measurement
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        """What `b` is compared with `a`: slower, faster, same or inconclusive."""
        return self.judgement.verdict

    @property
    def ratio(self) -> float:
        """The time of `b` over that of `a`: below 1 where `b` is faster."""
        return self.judgement.estimate.ratio

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of `ratio`."""
        return self.judgement.estimate.interval()

    def __str__(self) -> str:
        low, high = self.interval
        times = " against ".join(time_text(medians(one.processes).typical) for one in (self.b, self.a))  # paired
        text = f"{self.b.subject} is {_WORDS[self.verdict]} {self.a.subject}: {times}, {self.ratio:.3f}x"
        text += f" ({low:.3f} to {high:.3f}), noise floor {share_text(self.judgement.floor)}"
        return text + (f"; {self.judgement.reason}" if self.judgement.reason else "")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def _repr_html_(self) -> str:
        groups = [(one.subject, one.samples) for one in (self.a, self.b)]
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
    `benchmark`. `mode` is `cold` or `hot`, `stream` as `benchmark` takes it. All rounds are in this process: what
    differs between processes, as the placement of memory, is not in the interval. A notebook and a terminal show a bar.

    Raises UsageError for a bad mode, fewer than 3 rounds or what cannot be called, BackendUnavailable without a GPU,
    and MeasurementInvalid where one of the calls cannot be timed honestly.
    """
    for one in (first, second):
        if not callable(one):
            raise UsageError(f"compare takes two callables without arguments, not {type(one).__name__}")
    if mode not in MODES:
        raise UsageError(f"mode is '{mode}'; it is one of {', '.join(MODES)}")
    if rounds < _LEAST_ROUNDS:
        raise UsageError(f"rounds is {rounds}; a spread between rounds needs at least {_LEAST_ROUNDS}")
    from prism_bench.backends.cuda.backend import borrowed_backend

    names = _names(first, second)
    with borrowed_backend(stream) as (backend, library):
        subjects = [TimedCallable(one, MODES[mode], name) for one, name in zip((first, second), names, strict=True)]
        sides = [partial(measured, backend, library, one) for one in subjects]
        with shown_progress("compare", 2 * rounds) as step:
            a, b = alternated(sides[0], sides[1], rounds, step)
    return compared(a, b)


def alternated(
    first: _Side, second: _Side, rounds: int, step: Step = lambda words: None
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


def _names(first: Callable[[], object], second: Callable[[], object]) -> tuple[str, str]:
    """Return the functions' names; `first` and `second` where those are no names or the same."""
    names = tuple(getattr(one, "__name__", "") for one in (first, second))
    if "" in names or "<lambda>" in names or names[0] == names[1]:
        return "first", "second"
    return names[0], names[1]
