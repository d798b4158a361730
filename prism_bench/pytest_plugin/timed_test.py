"""What a test asks for: the function, its arguments, what is promised of its time, and what is correct."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from prism_bench.api.callable import MODES
from prism_bench.errors import UsageError

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
        return None if self.at_most is None else seconds_of(self.at_most)

    @property
    def share(self) -> float | None:
        """The least share of the copy ceiling, from 0 to 1."""
        return None if self.at_least is None else share_of(self.at_least)

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


def seconds_of(limit: float | str) -> float:
    """Return a time in seconds from a number or a text such as `5 us`; a UsageError where it is none."""
    if isinstance(limit, str):
        found = _TIME.fullmatch(limit.strip())
        seconds = float(found["number"]) * _SCALES[found["unit"]] if found else 0.0
    else:
        seconds = float(limit)
    if not 0 < seconds < float("inf"):
        raise UsageError(f"at_most={limit!r}: give seconds, or text such as '5 us', '1.2 ms' or '800 ns'")
    return seconds


def share_of(limit: float | str) -> float:
    """Return a share above 0 and at most 1 from a number or a text such as `80 %`; a UsageError where it is none."""
    if isinstance(limit, str):
        found = _SHARE.fullmatch(limit.strip())
        share = float(found["number"]) / 100 if found else 0.0
    else:
        share = float(limit)
    if not 0 < share <= 1:
        raise UsageError(f"at_least={limit!r}: give a share of the copy ceiling, 0.8 or '80 %'")
    return share
