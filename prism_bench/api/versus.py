"""`prism_bench.compare`: is one callable faster than another? Interleaved rounds, one verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from prism_bench import display
from prism_bench.analysis.compare.medians import medians
from prism_bench.analysis.compare.verdict import RULES, Judgement, Verdict, VerdictRules, judged, pair_of
from prism_bench.api.callable import MODES
from prism_bench.api.progress import Step, shown_progress
from prism_bench.errors import UsageError
from prism_bench.record.measurement import Measurement, merged
from prism_bench.units import share_text, time_text

LEAST_ROUNDS = 3
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
    "slower": "slower than", "faster": "faster than", "same": "as fast as",
    "inconclusive": "not clearly different from",
}  # fmt: skip


def compare(
    first: Callable[[], object], second: Callable[[], object], *, mode: str = "cold", rounds: int = 8,
    stream: Any = None,
) -> CallableComparison:  # fmt: skip
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
    if rounds < LEAST_ROUNDS:
        raise UsageError(f"rounds is {rounds}; a spread between rounds needs at least {LEAST_ROUNDS}")
    from prism_bench.api.inspected import TimedCallable, measured
    from prism_bench.backends.cuda.borrowed import borrowed_backend

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
