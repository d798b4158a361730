"""Outcome of a measured test: its results, its limits, and the words of a failure."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from prism_bench.analysis.compare.estimate import Estimate, estimate, medians
from prism_bench.analysis.run_analysis import interval_of
from prism_bench.api.callables import MODES
from prism_bench.errors import UsageError
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import TESTED, CaseResult, JsonTable
from prism_bench.spec.case import test_of
from prism_bench.spec.inputs import AnyArray
from prism_bench.spec.tolerance import Tolerance, compare
from prism_bench.units import count_text, rate_text, ratio_text, share_text, time_text

# What a test asks for: the function, its arguments, what is promised of its time, and what is correct.

_TIME = re.compile(r"(?P<number>\d+\.?\d*(e-?\d+)?|\.\d+)\s*(?P<unit>s|ms|us|µs|μs|ns)")
_SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_SHARE = re.compile(r"(?P<number>\d+\.?\d*|\.\d+)\s*%")


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Every argument of `Prism.__call__` that has a name."""

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


@dataclass(frozen=True)
class TimedTest(_Options):
    """One call of the fixture; see `Prism.__call__` for the fields. UsageError where they contradict each other."""

    function: Callable[..., object] | str
    arrays: tuple[object, ...]

    def __post_init__(self) -> None:
        self._require_options()
        if isinstance(self.function, str):
            self._require_catalogue(self.function)
        elif not callable(self.function):
            raise UsageError(f"prism takes a function or the name of a kernel, not {type(self.function).__name__}")
        if not isinstance(self.function, str) and self.at_least is not None and not self.bytes:
            raise UsageError(f"at_least={self.at_least!r} is a share of the copy ceiling: give bytes=, too")
        if not isinstance(self.function, str) and self.speedup and self.peer is None:
            raise UsageError(f"speedup={self.speedup} needs peer=, the function to be compared with")

    def _require_options(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"mode is '{self.mode}'; it is one of {', '.join(MODES)}")
        if self.speedup is not None and not 0 <= self.speedup < float("inf"):
            raise UsageError(f"speedup={self.speedup}: give a number from 0 upwards, such as 1.2")
        for name, count in (("bytes", self.bytes), ("flops", self.flops)):
            if count is not None and not count > 0:
                raise UsageError(f"{name}={count}: give what one call takes, a number above 0")
        _ = self.longest, self.share

    def _require_catalogue(self, name: str) -> None:
        given = ("bytes", "flops", "peer", "reference", "out", "rtol", "atol")
        odd = [word for word in given if getattr(self, word) is not None] + ["arrays"] * bool(self.arrays)
        if odd:
            raise UsageError(f"prism('{name}'): the spec of a catalogue's kernel has its {odd[0]}; leave it out here")

    @property
    def longest(self) -> float | None:
        """The longest time in seconds that `at_most` allows."""
        return None if self.at_most is None else _seconds_of(self.at_most)

    @property
    def share(self) -> float | None:
        """The least share of the copy ceiling, from 0 to 1."""
        return None if self.at_least is None else _share_of(self.at_least)

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


def _seconds_of(limit: float | str) -> float:
    """Return a time in seconds from a number or a text such as `5 us`; a UsageError where it is none."""
    if isinstance(limit, str):
        found = _TIME.fullmatch(limit.strip())
        seconds = float(found["number"]) * _SCALES[found["unit"]] if found else 0.0
    else:
        seconds = float(limit)
    if not 0 < seconds < float("inf"):
        raise UsageError(f"at_most={limit!r}: give seconds, or text such as '5 us', '1.2 ms' or '800 ns'")
    return seconds


def _share_of(limit: float | str) -> float:
    """Return a share above 0 and at most 1 from a number or a text such as `80 %`; a UsageError where it is none."""
    if isinstance(limit, str):
        found = _SHARE.fullmatch(limit.strip())
        share = float(found["number"]) / 100 if found else 0.0
    else:
        share = float(limit)
    if not 0 < share <= 1:
        raise UsageError(f"at_least={limit!r}: give a share of the copy ceiling, 0.8 or '80 %'")
    return share


# Limits of a test and their verdicts: missed only where the whole interval is beyond the limit and the noise.

PromiseWord = Literal["met", "missed", "undecided"]


@dataclass(frozen=True)
class JudgedPromise:
    """One limit, in words, with its `verdict` and what was found."""

    limit: str
    verdict: PromiseWord
    found: str


@dataclass(frozen=True)
class TestedTimes:
    """Times that limits are held to: the case, its metric, the peer to beat, the copy ceiling in bytes per second."""

    case: CaseResult
    metric: str
    peer: Measurement | None = None
    ceiling: float | None = None

    @property
    def own(self) -> Measurement:
        """The function's own times."""
        found = self.case.measurement(self.metric)
        assert found is not None, "only cases with times are judged"
        return found

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the function's time in seconds."""
        return interval_of(self.case, self.metric, self.own.median or 0.0)

    @property
    def against_peer(self) -> Estimate | None:
        """The function's time over the peer's, with its error."""
        return estimate(medians(self.peer.processes), medians(self.own.processes)) if self.peer else None


def judged(test: TimedTest, times: TestedTimes, noise: float) -> tuple[JudgedPromise, ...]:
    """Return the verdict on every limit of the test; `noise` is the smallest relative excess that counts."""
    return tuple(_judged(test, times, noise))


def _judged(test: TimedTest, times: TestedTimes, noise: float) -> Iterator[JudgedPromise]:
    if test.longest is not None:
        limit = f"at most {time_text(test.longest)}"
        yield JudgedPromise(limit, verdict(times.interval, test.longest, noise), f"{_excess(times, test.longest)}")
    if test.share is not None and times.ceiling:
        yield _of_share(test.share, times, times.ceiling, noise)
    compared = times.against_peer
    if compared is not None and test.least_speedup and times.peer:
        low, high = compared.interval()
        found = (
            f"{1 / compared.ratio:.3f}x of paired medians ({1 / high:.3f} to {1 / low:.3f})"
            if low
            else "one round shows no spread"
        )
        limit = f"at least {test.least_speedup:g}x as fast as {times.peer.subject.removeprefix('peer:')}"
        yield JudgedPromise(limit, verdict((low, high), 1 / test.least_speedup, noise), found)


def _of_share(share: float, times: TestedTimes, ceiling: float, noise: float) -> JudgedPromise:
    """Return the verdict on a share of the copy ceiling: a limit on the time that its bytes may take."""
    longest = times.case.bytes / (share * ceiling)
    low, high = (times.case.bytes / seconds / ceiling for seconds in times.interval[::-1])
    found = f"{share_text(low)} to {share_text(high)} of {rate_text(ceiling, 'B/s')}"
    return JudgedPromise(
        f"at least {share_text(share)} of the copy ceiling", verdict(times.interval, longest, noise), found
    )


def verdict(interval: tuple[float, float], limit: float, noise: float) -> PromiseWord:
    """Return whether an interval keeps a limit: missed where all of it is beyond limit and noise, met where all is in.

    Everything else is undecided, and a test does not fail for it.
    """
    low, high = interval
    if low > limit * (1 + noise):
        return "missed"
    return "met" if high <= limit else "undecided"


def _excess(times: TestedTimes, limit: float) -> str:
    ratio = (times.own.median or 0.0) / limit - 1
    return f"{share_text(abs(ratio))} {'above' if ratio > 0 else 'below'} the limit"


# What a test found, and the words in which a failure reports it.

_NOT_VERIFIED = "nothing was verified: give reference= or peer="


@dataclass(frozen=True)
class TestedTime:
    """Result of one call of the fixture.

    `case` is what the session's record keeps, `times` its times with intervals (None where there are none), `verified`
    what its result was compared with, `problem` why it has no time that can be trusted.
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
        """Whether the test fails: a wrong result, a time that cannot be trusted, or a limit that is missed."""
        return self.problem is not None or any(one.verdict == "missed" for one in self.promises)

    @property
    def seconds(self) -> float | None:
        """The median time in seconds, None without one."""
        return self.times.own.median if self.times else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the time in seconds, None without one."""
        return self.times.interval if self.times else None

    @property
    def line(self) -> str:
        """One line for the summary of a session."""
        words = [self._measured() if self.times else self.problem or "", *self._peer()]
        words += [f"{one.limit}: {one.verdict}" for one in self.promises]
        words += [_NOT_VERIFIED] if self.verified == _NOT_VERIFIED else []
        return f"{self.case.name}: {'; '.join(filter(None, words))}"

    def __str__(self) -> str:
        rows = [("measured", self._measured()), *(("peer", words) for words in self._peer())] if self.times else []
        rows += [("limit", f"{one.limit}: {one.verdict}, {one.found}") for one in self.promises]
        rows += [("verified", self.verified), ("device", self.device), ("repeat", self._repeat())]
        text = "\n".join(f"  {name:9} {words}" for name, words in rows)
        return f"{self.case.name}: {self.problem or self._headline()}\n{text}"

    def _headline(self) -> str:
        missed = [one.limit for one in self.promises if one.verdict == "missed"]
        beyond = f", by more than the noise of {self.noise:.1%}" if missed else ""
        return f"not {' and not '.join(missed)}{beyond}" if missed else "well"

    def _measured(self) -> str:
        assert self.times, "asked only with times"
        own, (low, high) = self.times.own, self.times.interval
        groups = (
            count_text(len(own.processes), "round")
            if self.case.family == TESTED
            else count_text(len(own.processes), "process", "processes")
        )
        kind = self.times.metric.replace("_", " ")
        return f"{time_text(own.median)} ({time_text(low)} to {time_text(high)}), {kind}, {groups}"

    def _peer(self) -> list[str]:
        if self.times is None or self.times.peer is None or self.times.peer.median is None:
            return []
        peer, own = self.times.peer, self.times.own.median
        ratio = ratio_text(peer.median / own if peer.median and own else None)
        return [f"{peer.subject.removeprefix('peer:')} takes {time_text(peer.median)}, {ratio} the time"]

    def _repeat(self) -> str:
        return shlex.join(["pytest", test_of(self.case.name)])


# Results of a tested function, compared with a reference or with the peer's: before its timing and after it.

# Relative and absolute error by type of the result, those of torch.testing.assert_close.
_ALLOWED = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
_EXACT = (0.0, 0.0)
_UNWRITTEN = 91  # fills integers, which have no NaN


@dataclass(frozen=True)
class HostArray:
    """One result on the host, as NumPy can compare it, and the name of the type that it was computed in."""

    values: AnyArray
    dtype: str


@dataclass(frozen=True)
class Verification:
    """What was compared, in words and as a record keeps it; `problem` is why it is wrong, None where it is right."""

    words: str = _NOT_VERIFIED
    entries: tuple[JsonTable, ...] = ()
    problem: str | None = None


class Answers:
    """The correct results of one test, evaluated once; `check` compares those of the function with them."""

    def __init__(self, test: TimedTest, settle: Callable[[], None]) -> None:
        self._test, self._settle = test, settle
        self._origin, self._expected = self._correct()

    def check(self) -> Verification:
        """Call the function once and compare what it gives."""
        if self._expected is None:
            return Verification()
        assert callable(self._test.function), "a catalogue's kernel has its own verification"
        actual = self._called(self._test.function)
        if len(actual) != len(self._expected):
            return _wrong(
                f"{count_text(len(actual), 'result')}, and {self._origin} has {len(self._expected)}{_hint(actual)}"
            )
        entries = tuple(
            _entry(number, *pair, self._test) for number, pair in enumerate(zip(actual, self._expected, strict=True))
        )
        bad = next((entry for entry in entries if not entry["passed"]), None)
        return Verification(self._words(entries), entries, _complaint(bad, self._origin) if bad else None)

    def _correct(self) -> tuple[str, list[HostArray] | None]:
        reference, peer = self._test.reference, self._test.peer
        if callable(reference):
            return "the reference", _on_host(reference(*self._test.arrays))
        if reference is not None:
            return "the reference", _on_host(reference)
        return ("the peer", self._called(peer)) if peer is not None else ("", None)

    def _called(self, function: Callable[..., object]) -> list[HostArray]:
        """Return what the function gives: what it writes into `out`, else what it returns."""
        outs = self._test.outs
        for array in outs:
            array[...] = float("nan") if "float" in str(array.dtype) or "complex" in str(array.dtype) else _UNWRITTEN
        returned = function(*self._test.arrays)
        self._settle()
        return _on_host(outs or returned)

    def _words(self, entries: Sequence[JsonTable]) -> str:
        errors = [entry["max_error"] for entry in entries if "max_error" in entry]
        count = sum(entry.get("compared", 0) for entry in entries)
        return f"{count_text(count, 'value')} against {self._origin}, largest error {max(errors, default=0.0):.2g}"


def _wrong(problem: str) -> Verification:
    return Verification(problem, ({"passed": False, "error": problem},), problem)


def _hint(actual: Sequence[HostArray]) -> str:
    return "" if actual else "; name the arrays that it writes by out="


def _complaint(entry: JsonTable, origin: str) -> str:
    if "error" in entry:
        return f"wrong: {entry['error']} ({origin})"
    share = f"{entry['differing']} of {entry['compared']} values differ from {origin}"
    return f"wrong: {share}, at {entry['place']} {entry['actual']:.6g} for {entry['expected']:.6g}"


def _entry(number: int, actual: HostArray, expected: HostArray, test: TimedTest) -> JsonTable:
    """Return the comparison of one result as a record keeps it."""
    name: JsonTable = {"output": f"result {number + 1}"}
    if actual.values.shape != expected.values.shape:
        shapes = f"shape {list(actual.values.shape)}, not {list(expected.values.shape)}"
        return {**name, "passed": False, "error": f"{name['output']} has {shapes}"}
    relative, floor = _ALLOWED.get(actual.dtype, _EXACT)
    relative = relative if test.rtol is None else test.rtol
    floor = floor if test.atol is None else test.atol
    found = compare(actual.values, expected.values, Tolerance("close", relative=relative, floor=floor), np)
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(found).items()}
    return {**name, **plain, "tolerance": f"rtol {relative:g}, atol {floor:g}"}


def _on_host(value: object) -> list[HostArray]:
    """Return results as host arrays: of an array, a number, or a list or tuple of them; none of None."""
    if value is None:
        return []
    if isinstance(value, list | tuple) and all(hasattr(one, "dtype") for one in _each(value)):
        return [_host_array(one) for one in _each(value)]
    return [_host_array(value)]


def _each(values: Iterable[Any]) -> list[Any]:
    return list(values)


def _host_array(value: Any) -> HostArray:
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if hasattr(value, "detach"):  # PyTorch; NumPy has no bfloat16
        value = value.detach().cpu()
        value = (value.float() if dtype == "bfloat16" else value).numpy()
    elif hasattr(value, "get") and hasattr(value, "device"):  # CuPy
        value = value.get()
    found = np.asarray(value)
    if found.dtype.kind == "V":  # JAX's bfloat16
        found = found.astype(np.float32)
    if found.dtype.kind == "c":
        real: AnyArray = np.stack([np.real(found), np.imag(found)], axis=-1)
        return HostArray(real, real.dtype.name)
    return HostArray(found.astype(np.uint8) if found.dtype.kind == "b" else found, dtype or found.dtype.name)
