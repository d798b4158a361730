"""One record as points: per measurement its median and what tells whether, and with what, it may be compared.

The medians are read straight from the record's JSON. They are those of `Measurement.median`, in a fifth of the time
that it takes to build its objects; a thousand records are read before a trend can be told.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from prism_bench.errors import ResultsError
from prism_bench.run_record import require_schema, uuids_of
from prism_bench.strict_json import json_line

# Columns of text, which repeat, and of numbers with their types. `value` is the median in seconds; `code` sets the
# case's machine code and launches apart from others; `doubt` says why the point cannot be trusted, empty if it can.
WORDS = ("case", "metric", "subject", "code", "doubt")
NUMBERS = {"value": "f8", "clock": "f4", "samples": "i4", "throttled": "i4"}


@dataclass(frozen=True)
class Facts:
    """What a record says about itself: whose, when and under which circumstances its points were measured."""

    file: str
    machine: str
    backend: str
    created: str
    commit: str | None
    dirty: bool
    complete: bool
    device: str
    software: dict
    protocol: dict


def points_in(plain: object, file: str, origin: str) -> tuple[Facts, dict[str, list]]:
    """The facts of an encoded record, known as `file`, and its points as columns of equal length.

    Cases and measurements without samples are left out. A ResultsError names `origin` where it holds no record.
    """
    require_schema(plain, origin)
    try:
        facts = _facts(plain, file)
        rows = [row for case in plain["cases"] for row in _rows(case)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ResultsError(f"{origin}: damaged run record ({type(error).__name__}: {error})") from error
    columns = zip(*rows, strict=True) if rows else [()] * len((*WORDS, *NUMBERS))
    return facts, dict(zip((*WORDS, *NUMBERS), map(list, columns), strict=True))


def _facts(plain, file):
    machine = plain["machine"]
    return Facts(
        file=file,
        machine=str(machine["id"]),
        backend=str(plain["backend"]),
        created=utc(plain["created"]),
        commit=plain.get("commit"),
        dirty=bool(plain.get("dirty", False)),
        complete=bool(plain.get("complete", True)),
        device="+".join(uuids_of(machine, plain.get("parts", ()))) or str(machine.get("device") or ""),
        software={str(name): str(version) for name, version in plain["software"].items()},
        protocol=dict(plain["protocol"]),
    )


def utc(text: str) -> str:
    """The time in ISO 8601 without a zone, so that times sort as text; one that names no zone is UTC already."""
    time = datetime.fromisoformat(text)
    return (time.astimezone(UTC) if time.tzinfo else time).replace(tzinfo=None).isoformat(timespec="seconds")


def _rows(case):
    if case["status"] != "ok" and not case["measurements"]:
        return
    code = _code(case)
    for one in case["measurements"]:
        groups = [group for group in one["processes"] if group["counts"]]
        if groups:
            value = _median([_median(group["counts"]) * group["unit"] for group in groups])
            doubt = _doubt(case, one, value)
            yield (
                case["name"], one["metric"], one["subject"], code, doubt,
                value, _clock(one.get("clocks", ())),
                sum(len(group["counts"]) for group in groups), one.get("throttled", 0),
            )  # fmt: skip


def _median(values):
    """The median, without the checks of `statistics.median`: there are millions to be found."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _clock(processes):
    """The mean clock in hertz, 0 where none was read: as good as the median here, and ten times as quick."""
    count = sum(map(len, processes))
    return sum(map(sum, processes)) / count * 1e6 if count else 0.0


def _code(case):
    """What tells one machine code, and the way it is launched, from another; empty where the record does not know."""
    code = case.get("code") or {}
    return json_line([code.get("sass"), code.get("launches"), code.get("shared_bytes")]) if code.get("sass") else ""


def _doubt(case, one, value):
    if case["status"] != "ok":
        return f"the case is {case['status']}: {case.get('reason') or 'the record gives no reason'}"
    if not one.get("valid", True):
        return one.get("reason") or "invalid; the record gives no reason"
    return "" if value > 0 else "a time that is not above zero"
