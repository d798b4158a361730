"""What the comparison with the references found, in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prism_bench.analysis.summary import number
from prism_bench.record.run_record import CaseResult


@dataclass(frozen=True)
class VerifiedOutput:
    """One output of one case against its reference; `words` names the worst place and the value there."""

    case: str
    output: str
    seed: str
    passed: bool
    worst: str
    relative: str
    norm: str
    tolerance: str
    compared: str
    words: str


def checks_of(case: CaseResult) -> list[VerifiedOutput]:
    """Return every comparison of the case, the failed ones first."""
    return sorted((_check(case, entry) for entry in case.verification), key=lambda check: check.passed)


def _check(case: CaseResult, entry: Mapping[str, Any]) -> VerifiedOutput:
    return VerifiedOutput(
        case=case.name,
        output=_plain(entry.get("output")),
        seed=_plain(entry.get("seed")),
        passed=bool(entry.get("passed")),
        worst=_error(entry.get("max_error")),
        relative=_error(entry.get("max_relative")),
        norm=_error(entry.get("norm_error")),
        tolerance=_plain(entry.get("tolerance")),
        compared=_compared(entry),
        words=_words(entry),
    )


def _plain(value: object) -> str:
    return "-" if value is None else str(value)


def _error(value: object) -> str:
    error = number(value)
    return "-" if error is None else "0" if error == 0 else f"{error:.1e}"


def _compared(entry: Mapping[str, Any]) -> str:
    compared, of = number(entry.get("compared")), number(entry.get("of"))
    if compared is None:
        return "-"
    if of is None or compared >= of:
        return f"all {compared:,.0f}"
    return f"{compared:,.0f} of {of:,.0f}, {entry.get('where') or 'sampled'}"


def _words(entry: Mapping[str, Any]) -> str:
    if entry.get("error"):
        return str(entry["error"])
    place = entry.get("place")
    if entry.get("passed") or not isinstance(place, list | tuple):
        return ""
    index = ", ".join(str(part) for part in place)
    actual, expected = number(entry.get("actual")), number(entry.get("expected"))
    when = f" in sample {entry.get('sample')} of {entry['metric']}" if entry.get("metric") else ""
    return f"{entry.get('output')}[{index}] is {_value(actual)}{when}, the reference has {_value(expected)}"


def _value(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.8g}"
