"""Results of a tested function, compared with a reference or with the peer's: before its timing and after it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from prism_bench.pytest_plugin.outcome import NOT_VERIFIED
from prism_bench.pytest_plugin.timed_test import TimedTest
from prism_bench.record.run_record import JsonTable
from prism_bench.spec.inputs import AnyArray
from prism_bench.spec.tolerance import Tolerance, compare
from prism_bench.units import count_text

# Relative and absolute error by type of the result, those of torch.testing.assert_close.
ALLOWED = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
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

    words: str = NOT_VERIFIED
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
    relative, floor = ALLOWED.get(actual.dtype, _EXACT)
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
