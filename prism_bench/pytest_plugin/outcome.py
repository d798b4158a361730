"""Outcome of a measured test: its request, the verdicts on its limits, its report, and its verification."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from prism_bench.analysis.compare.estimate import Estimate, estimate, medians
from prism_bench.analysis.run_analysis import interval_of
from prism_bench.api.callables import MODES
from prism_bench.errors import UsageError
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import TESTED, CaseResult
from prism_bench.record.schema import JsonTable
from prism_bench.spec.case import test_of
from prism_bench.spec.inputs import AnyArray
from prism_bench.spec.tolerance import Tolerance, compare
from prism_bench.units import count_text, rate_text, ratio_text, share_text, time_text

# Request of a test: the function, its arguments, the limits of its time, and the correct result.

_TIME = re.compile(r"(?P<number>\d+\.?\d*(e-?\d+)?|\.\d+)\s*(?P<unit>s|ms|us|µs|μs|ns)")
_SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_SHARE = re.compile(r"(?P<number>\d+\.?\d*|\.\d+)\s*%")


@dataclass(frozen=True)
class TimedTest:
    """One call of the fixture; see `Prism.__call__` for the fields. UsageError if they contradict each other."""

    function: Callable[..., object] | str
    arrays: tuple[object, ...]
    _: KW_ONLY
    bytes: int | None = None
    flops: int | None = None
    at_most: float | str | None = None
    at_least: float | str | None = None
    peer: Callable[..., object] | None = None
    speedup: float | None = None
    reference: object = None
    out: object = None
    rtol: float | None = None
    atol: float | None = None
    mode: str = "cold"
    label: str = "S0"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"mode is '{self.mode}'; it is one of {', '.join(MODES)}")
        if self.speedup is not None and not 0 <= self.speedup < float("inf"):
            raise UsageError(f"speedup={self.speedup}: give a number from 0 upwards, such as 1.2")
        for name, count in (("bytes", self.bytes), ("flops", self.flops)):
            if count is not None and not count > 0:
                raise UsageError(f"{name}={count}: give what one call takes, a number above 0")
        _ = self.longest, self.share  # both raise a UsageError for a malformed limit
        if isinstance(self.function, str):
            names = ("bytes", "flops", "peer", "reference", "out", "rtol", "atol")
            odd = [name for name in names if getattr(self, name) is not None] + ["arrays"] * bool(self.arrays)
            if odd:
                raise UsageError(
                    f"prism('{self.function}'): the spec of a catalogue's kernel has its {odd[0]}; leave it out here"
                )
            return
        if not callable(self.function):
            raise UsageError(f"prism takes a function or the name of a kernel, not {type(self.function).__name__}")
        if self.at_least is not None and not self.bytes:
            raise UsageError(f"at_least={self.at_least!r} is a share of the copy ceiling: give bytes=, too")
        if self.speedup and self.peer is None:
            raise UsageError(f"speedup={self.speedup} needs peer=, the function to be compared with")

    @property
    def longest(self) -> float | None:
        """The longest time in seconds that `at_most` allows."""
        limit = self.at_most
        if limit is None:
            return None
        if isinstance(limit, str):
            match = _TIME.fullmatch(limit.strip())
            seconds = float(match["number"]) * _SCALES[match["unit"]] if match else 0.0
        else:
            seconds = float(limit)
        if not 0 < seconds < float("inf"):
            raise UsageError(f"at_most={limit!r}: give seconds, or text such as '5 us', '1.2 ms' or '800 ns'")
        return seconds

    @property
    def share(self) -> float | None:
        """The least share of the copy ceiling, from 0 to 1."""
        limit = self.at_least
        if limit is None:
            return None
        if isinstance(limit, str):
            match = _SHARE.fullmatch(limit.strip())
            share = float(match["number"]) / 100 if match else 0.0
        else:
            share = float(limit)
        if not 0 < share <= 1:
            raise UsageError(f"at_least={limit!r}: give a share of the copy ceiling, 0.8 or '80 %'")
        return share

    @property
    def least_speedup(self) -> float:
        """The least time of the peer over the function's; 0 without such a limit."""
        return self.speedup if self.speedup is not None else float(self.peer is not None)

    @property
    def metric(self) -> str:
        """The metric of the times."""
        return MODES[self.mode]

    @property
    def outs(self) -> tuple[Any, ...]:
        """The arrays that the function writes."""
        if self.out is None:
            return ()
        return tuple(cast("Sequence[Any]", self.out)) if isinstance(self.out, list | tuple) else (self.out,)


# Verdicts on the limits of a test: missed only if the whole interval is beyond the limit and the noise.

PromiseWord = Literal["met", "missed", "undecided"]


@dataclass(frozen=True)
class JudgedPromise:
    """One limit as text, with its `verdict` and the measured value."""

    limit: str
    verdict: PromiseWord
    measured: str


@dataclass(frozen=True)
class TestedTimes:
    """Times to be judged: the case, its metric, the times of the peer, the copy ceiling in bytes per second."""

    case: CaseResult
    metric: str
    peer: Measurement | None = None
    ceiling: float | None = None

    @property
    def function(self) -> Measurement:
        """The times of the function."""
        measured = self.case.measurement(self.metric)
        assert measured is not None, "only cases with times are judged"
        return measured

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the function's time in seconds."""
        return interval_of(self.case, self.metric, self.function.median or 0.0)

    @property
    def against_peer(self) -> Estimate | None:
        """The function's time over the peer's, with its error."""
        return estimate(medians(self.peer.processes), medians(self.function.processes)) if self.peer else None


def judged(test: TimedTest, times: TestedTimes, noise: float) -> tuple[JudgedPromise, ...]:
    """Return the verdict on every limit of the test; `noise` is the smallest relative excess that counts."""
    promises: list[JudgedPromise] = []
    if test.longest is not None:
        limit = f"at most {time_text(test.longest)}"
        ratio = (times.function.median or 0.0) / test.longest - 1
        measured = f"{share_text(abs(ratio))} {'above' if ratio > 0 else 'below'} the limit"
        promises.append(JudgedPromise(limit, verdict(times.interval, test.longest, noise), measured))
    if test.share is not None and times.ceiling:
        limit = f"at least {share_text(test.share)} of the copy ceiling"
        longest = times.case.bytes / (test.share * times.ceiling)  # for the bytes of a call
        low, high = (times.case.bytes / seconds / times.ceiling for seconds in times.interval[::-1])
        measured = f"{share_text(low)} to {share_text(high)} of {rate_text(times.ceiling, 'B/s')}"
        promises.append(JudgedPromise(limit, verdict(times.interval, longest, noise), measured))
    compared = times.against_peer
    if compared is not None and test.least_speedup and times.peer:
        limit = f"at least {test.least_speedup:g}x as fast as {times.peer.subject.removeprefix('peer:')}"
        low, high = compared.interval()
        measured = "one round shows no spread"
        if low:
            measured = f"{1 / compared.ratio:.3f}x of paired medians ({1 / high:.3f} to {1 / low:.3f})"
        promises.append(JudgedPromise(limit, verdict((low, high), 1 / test.least_speedup, noise), measured))
    return tuple(promises)


def verdict(interval: tuple[float, float], limit: float, noise: float) -> PromiseWord:
    """Return whether an interval keeps a limit: `missed` if all of it exceeds limit and noise, `met` if all is within.

    Otherwise it is undecided, and the test does not fail.
    """
    low, high = interval
    if low > limit * (1 + noise):
        return "missed"
    return "met" if high <= limit else "undecided"


# Result of a test, and the report of a failure.

_NOT_VERIFIED = "nothing was verified: give reference= or peer="


@dataclass(frozen=True)
class TestedTime:
    """Result of one call of the fixture.

    `case` is kept in the session's record, `times` are its times with intervals (None without times), `verified` names
    the comparison of its result, `problem` is why it has no trusted time.
    """

    __test__ = False  # pytest collects classes of this name otherwise

    case: CaseResult
    device: str
    verified: str = _NOT_VERIFIED
    times: TestedTimes | None = None
    promises: tuple[JudgedPromise, ...] = ()
    problem: str | None = None
    noise: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the test fails: a wrong result, an untrusted time, or a missed limit."""
        return self.problem is not None or any(promise.verdict == "missed" for promise in self.promises)

    @property
    def seconds(self) -> float | None:
        """The median time in seconds, None without times."""
        return self.times.function.median if self.times else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the time in seconds, None without times."""
        return self.times.interval if self.times else None

    @property
    def line(self) -> str:
        """One line for the summary of a session."""
        parts = [text for _, text in self._times_rows(self.times)] if self.times else [self.problem or ""]
        parts += [f"{promise.limit}: {promise.verdict}" for promise in self.promises]
        parts += [_NOT_VERIFIED] if self.verified == _NOT_VERIFIED else []
        return f"{self.case.name}: {'; '.join(filter(None, parts))}"

    def __str__(self) -> str:
        missed = [promise.limit for promise in self.promises if promise.verdict == "missed"]
        headline = "well"
        if missed:
            headline = f"not {' and not '.join(missed)}, by more than the noise of {self.noise:.1%}"
        rows = self._times_rows(self.times) if self.times else []
        rows += [("limit", f"{promise.limit}: {promise.verdict}, {promise.measured}") for promise in self.promises]
        rows += [("verified", self.verified), ("device", self.device)]
        rows += [("repeat", shlex.join(["pytest", test_of(self.case.name)]))]
        text = "\n".join(f"  {name:9} {row}" for name, row in rows)
        return f"{self.case.name}: {self.problem or headline}\n{text}"

    def _times_rows(self, times: TestedTimes) -> list[tuple[str, str]]:
        """Return name and text of the function's time and of the peer's, if there is any."""
        function, (low, high) = times.function, times.interval
        count = len(function.processes)
        rounds = self.case.family == TESTED
        groups = count_text(count, "round") if rounds else count_text(count, "process", "processes")
        kind = times.metric.replace("_", " ")
        rows = [("measured", f"{time_text(function.median)} ({time_text(low)} to {time_text(high)}), {kind}, {groups}")]
        peer = times.peer
        if peer is not None and peer.median is not None:
            ratio = ratio_text(peer.median / function.median if peer.median and function.median else None)
            text = f"{peer.subject.removeprefix('peer:')} takes {time_text(peer.median)}, {ratio} the time"
            rows.append(("peer", text))
        return rows


# Verification of a tested function against a reference or the peer, before and after its timing.

# Relative and absolute error by type of the result, those of torch.testing.assert_close.
_ALLOWED = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
_EXACT = (0.0, 0.0)
_UNWRITTEN = 91  # fills integers, which have no NaN


@dataclass(frozen=True)
class HostArray:
    """One result on the host, as NumPy can compare it, and the name of its original type."""

    values: AnyArray
    dtype: str


@dataclass(frozen=True)
class Verification:
    """Comparison of a result, as text and as entries of a record; `problem` is why it is wrong, or None."""

    text: str = _NOT_VERIFIED
    entries: tuple[JsonTable, ...] = ()
    problem: str | None = None


class Answers:
    """The correct results of one test, evaluated once; `check` compares the function's results with them."""

    def __init__(self, test: TimedTest, settle: Callable[[], None]) -> None:
        self._test, self._settle = test, settle
        self._origin, self._expected = self._correct()

    def check(self) -> Verification:
        """Call the function once and compare its results."""
        if self._expected is None:
            return Verification()
        assert callable(self._test.function), "a catalogue's kernel has its own verification"
        actual = self._called(self._test.function)
        if len(actual) != len(self._expected):
            problem = f"{count_text(len(actual), 'result')}, and {self._origin} has {len(self._expected)}"
            problem += "" if actual else "; name the arrays that it writes by out="
            return Verification(problem, ({"passed": False, "error": problem},), problem)
        pairs = enumerate(zip(actual, self._expected, strict=True))
        entries = tuple(_entry(number, *pair, self._test) for number, pair in pairs)
        errors = [entry["max_error"] for entry in entries if "max_error" in entry]
        count = sum(entry.get("compared", 0) for entry in entries)
        text = f"{count_text(count, 'value')} against {self._origin}, largest error {max(errors, default=0.0):.2g}"
        bad = next((entry for entry in entries if not entry["passed"]), None)
        return Verification(text, entries, _complaint(bad, self._origin) if bad else None)

    def _correct(self) -> tuple[str, list[HostArray] | None]:
        reference, peer = self._test.reference, self._test.peer
        if callable(reference):
            return "the reference", _on_host(reference(*self._test.arrays))
        if reference is not None:
            return "the reference", _on_host(reference)
        return ("the peer", self._called(peer)) if peer is not None else ("", None)

    def _called(self, function: Callable[..., object]) -> list[HostArray]:
        """Return the function's results: the arrays of `out`, else its return value."""
        outs = self._test.outs
        for array in outs:
            array[...] = float("nan") if "float" in str(array.dtype) or "complex" in str(array.dtype) else _UNWRITTEN
        returned = function(*self._test.arrays)
        self._settle()
        return _on_host(outs or returned)


def _complaint(entry: JsonTable, origin: str) -> str:
    if "error" in entry:
        return f"wrong: {entry['error']} ({origin})"
    share = f"{entry['differing']} of {entry['compared']} values differ from {origin}"
    return f"wrong: {share}, at {entry['place']} {entry['actual']:.6g} for {entry['expected']:.6g}"


def _entry(number: int, actual: HostArray, expected: HostArray, test: TimedTest) -> JsonTable:
    """Return the comparison of one result as an entry of a record."""
    name = f"result {number + 1}"
    if actual.values.shape != expected.values.shape:
        shapes = f"shape {list(actual.values.shape)}, not {list(expected.values.shape)}"
        return {"output": name, "passed": False, "error": f"{name} has {shapes}"}
    relative, floor = _ALLOWED.get(actual.dtype, _EXACT)
    relative = relative if test.rtol is None else test.rtol
    floor = floor if test.atol is None else test.atol
    difference = compare(actual.values, expected.values, Tolerance("close", relative=relative, floor=floor), np)
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(difference).items()}
    return {"output": name, **plain, "tolerance": f"rtol {relative:g}, atol {floor:g}"}


def _on_host(value: object) -> list[HostArray]:
    """Return results as host arrays: of an array, a number, or a list or tuple of arrays; empty for None."""
    if value is None:
        return []
    if isinstance(value, list | tuple):
        values = cast("Sequence[Any]", value)
        if all(hasattr(array, "dtype") for array in values):
            return [_host_array(array) for array in values]
    return [_host_array(value)]


def _host_array(value: Any) -> HostArray:
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if hasattr(value, "detach"):  # PyTorch; NumPy has no bfloat16
        value = value.detach().cpu()
        value = (value.float() if dtype == "bfloat16" else value).numpy()
    elif hasattr(value, "get") and hasattr(value, "device"):  # CuPy
        value = value.get()
    array = np.asarray(value)
    if array.dtype.kind == "V":  # JAX's bfloat16
        array = array.astype(np.float32)
    if array.dtype.kind == "c":
        real: AnyArray = np.stack([np.real(array), np.imag(array)], axis=-1)
        return HostArray(real, real.dtype.name)
    return HostArray(array.astype(np.uint8) if array.dtype.kind == "b" else array, dtype or array.dtype.name)
