"""Plain values of what a run found, for JSON, comments on pull requests and pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict

from prism_bench.analysis.bounds.why import CodeAgainst, CountedNear, Why, WhyCounter
from prism_bench.analysis.compare.selection import CaseRole, ChangeReason, CodeIdentity, SelectedCase, Selection
from prism_bench.analysis.peers import peer_rows
from prism_bench.analysis.run_analysis import Reading, read
from prism_bench.analysis.summary import (
    DERIVED,
    condition_texts,
    conditions,
    number,
    summary_rows,
    time_spent,
    window_seconds,
)
from prism_bench.catalogue import Catalogue
from prism_bench.compilation.listing import EntryDifference
from prism_bench.record.run_record import CaseResult, RunRecord, encode
from prism_bench.spec.metric import MEASURED, STAND_INS, timed_on
from prism_bench.units import bytes_text, rate_text

# What `--json` prints: the encoded record, with derived values next to what was measured.

_TEXT = ("bound", "best_peer", "invalid")


def view(record: RunRecord, catalogue: Catalogue | None = None, *, must_be_held: bool = True) -> dict[str, Any]:
    """Return the record as plain JSON values; `must_be_held` as in `read`.

    `timed` is whose the times are: `kernel`, or what the backend times in its place, such as `NumPy reference`.
    `headline` has a row for each group of labels and class of peers (`HeadlineRow`), `limits` holds the measured launch
    overhead and ceilings, `findings` what is wrong or worth knowing, `time_spent` the seconds of the run by phase and
    `window_seconds` those within measurement windows of kernels and of peers, if the record keeps them. Every case has
    a `derived` object: medians and spreads of its valid times, rates, shares, ratios, peers and budgets. Unknown values
    are null.
    """
    reading, plain = read(record, catalogue, must_be_held=must_be_held), encode(record)
    for case, result, row in zip(plain["cases"], record.cases, summary_rows(record), strict=True):
        budgets = _budgets(reading, result.name)
        case["derived"] = {**_derived(row), "peers": peer_rows(result), "budgets": budgets}
    limits = {name: dict(getattr(reading.limits, name)) for name in ("floors", "ceilings", "sources")}
    found = [vars(finding) for finding in reading.findings]
    derived = {"headline": reading.against_peers, "limits": limits, "findings": found}
    spent = time_spent(record)
    windows = dict(zip(("kernels", "peers"), window_seconds(record), strict=True))
    return {
        **plain,
        "timed": timed_on(record.backend),
        **derived,
        **({"time_spent": spent, "window_seconds": windows} if spent else {}),
    }


def _derived(row: Mapping[str, Any]) -> dict[str, Any]:
    times = {metric: _time(row, metric) for metric in MEASURED}
    rest = {name: row[name] if name in _TEXT else number(row[name]) for name in DERIVED}
    known = {metric: time for metric, time in times.items() if time}
    return {"times": known, **rest, "throttled": int(row["throttled"])}


def _time(row: Mapping[str, Any], metric: str) -> dict[str, Any] | None:
    median = number(row[metric])
    return None if median is None else {"median": median, "spread": number(row[f"{metric}_spread"])}


def _budgets(reading: Reading, case: str) -> list[dict[str, Any]]:
    return [
        {
            "from": one.source,
            "metric": one.budget.metric,
            "at_most": one.budget.at_most,
            "at_least": one.budget.at_least,
            "value": one.value,
            "interval": one.interval,
            "verdict": one.verdict,
        }
        for one in reading.budgets
        if one.case == case
    ]


# The machine, the software and the protocol of a record as pairs of words.

_WORDS = {
    "sm_count": "multiprocessors", "l2_bytes": "L2 cache", "memory_bytes": "memory", "uuid": "UUID", "cpu": "CPU",
    "compute_capability": "compute capability", "id": "machine", "memory_bus_bits": "memory bus, bits",
    "highest_sm_clock": "highest SM clock", "fp32_lanes": "FP32 lanes per multiprocessor",
}  # fmt: skip


def machine_name(record: RunRecord) -> str:
    """Return the name of what was measured: the device's, else the CPU's, else the machine's id."""
    device, host = record.machine.get("device"), record.machine.get("host")
    if isinstance(device, dict) and device.get("name"):
        return str(device["name"])
    if isinstance(device, str):
        return device
    if isinstance(host, dict) and host.get("cpu"):
        return str(host["cpu"])
    return str(record.machine.get("id", "an unnamed machine"))


def backend_name(record: RunRecord) -> str:
    """Return the name of the backend, with the environment where records of several are kept apart."""
    environment = record.owner[2]
    return f"{record.backend} ({environment})" if environment else record.backend


def backend_text(backend: str) -> str:
    """Return `cuda backend` for the name of a backend, with whose times they are where it times no kernels.

    The name may have the environment behind it, as `backend_name` returns it.
    """
    known = STAND_INS.get(backend.partition(" (")[0])
    return f"{backend} backend (times of the {known.name})" if known else f"{backend} backend"


def devices_text(record: RunRecord) -> str | None:
    """Return `2 GPUs: ` and their UUIDs, where parts of several devices were merged; else None."""
    several = len(record.uuids) > 1
    return f"{len(record.uuids)} GPUs: {', '.join(record.uuids)}" if several else None


def facts(record: RunRecord) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return titled groups of (name, value) pairs: device, host, software, protocol, conditions; no empty ones."""
    loose = {key: value for key, value in record.machine.items() if not isinstance(value, dict)}
    loose |= {"uuid": several} if (several := devices_text(record)) else {}
    nested = [(key.capitalize(), value) for key, value in record.machine.items() if isinstance(value, dict)]
    groups = [("Machine", loose), *nested, ("Software", record.software), ("Protocol", record.protocol)]
    shown = [(str(title), [_pair(*item) for item in values.items()]) for title, values in groups if values]
    seen = conditions(record)
    return shown + ([("While it was measured", list(condition_texts(seen)))] if seen else [])


def _pair(key: str, value: object) -> tuple[str, str]:
    return _WORDS.get(key, key.replace("_", " ")), _text(key, value)


def _text(key: str, value: object) -> str:
    if key.endswith("_bytes") and isinstance(value, int):
        return bytes_text(value)
    if key.endswith("_clock") and isinstance(value, int):
        return rate_text(value, "Hz")
    if key == "compute_capability" and isinstance(value, int):
        return f"{value // 10}.{value % 10}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, dict):
        parts = {name: f"({_text('', item)})" if isinstance(item, dict) else item for name, item in value.items()}
        return ", ".join(f"{name.replace('_', ' ')} {item}" for name, item in parts.items())
    return "-" if value is None else str(value)


# A difference of machine code as plain values: for JSON, comments on pull requests, and pages.

BeforeAfter = list[int | None]  # two numbers; null on a side without the entry, or where it is not known


class FirstDifferenceJson(TypedDict):
    """The first block that differs: its number from 0, and a few lines of it on each side."""

    block: int
    before: list[str]
    after: list[str]


class EntryDifferenceJson(TypedDict):
    """One entry. Each number is [before, after]; bytes are per thread, shared memory per block.

    `kinds` is empty and `instructions` and `code_bytes` are null where no disassembler is installed.
    """

    entry: str
    state: Literal["changed", "added", "removed"]
    registers: BeforeAfter
    spill_bytes: BeforeAfter
    stack_bytes: BeforeAfter
    shared_bytes: BeforeAfter
    code_bytes: BeforeAfter
    instructions: BeforeAfter
    kinds: dict[str, list[int]]
    first_difference: FirstDifferenceJson | None


def code_difference_json(entries: Iterable[EntryDifference]) -> list[EntryDifferenceJson]:
    """Return the differences of all entries as plain JSON values."""
    return [_entry(one) for one in entries]


def _entry(one: EntryDifference) -> EntryDifferenceJson:
    sides = one.before, one.after
    first = one.first
    return {
        "entry": one.entry,
        "state": "added" if one.before is None else "removed" if one.after is None else "changed",
        "registers": [side.resources.registers if side else None for side in sides],
        "spill_bytes": [side.spill_bytes if side else None for side in sides],
        "stack_bytes": [side.resources.stack_bytes if side else None for side in sides],
        "shared_bytes": [side.resources.shared_bytes if side else None for side in sides],
        "code_bytes": [side.code_bytes if side else None for side in sides],
        "instructions": [side.instructions if side else None for side in sides],
        "kinds": {kind: list(counts) for kind, counts in one.kinds.items()},
        "first_difference": first and {"block": first.number, "before": [*first.before], "after": [*first.after]},
    }


_FACTS = ("registers", "spill_bytes", "stack_bytes", "shared_bytes", "code_bytes", "instructions")


def changes_of(one: EntryDifferenceJson) -> list[str]:
    """Return in words every number of the entry that changed: `registers 32 -> 40`, `fp32 12 -> 14 (+2)`."""
    facts: list[tuple[str, Sequence[int | None]]] = [(name.replace("_", " "), one[name]) for name in _FACTS]
    words = [_change(name, *pair) for name, pair in facts if pair[0] != pair[1]]
    return words + [_change(kind, *pair) for kind, pair in one["kinds"].items() if pair[0] != pair[1]]


def _change(name: str, before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return f"{name} {after if before is None else before}"
    return f"{name} {before} -> {after} ({after - before:+d})"


# Which cases a comparison measured and why, as plain values: for JSON, comments on pull requests, and pages.


class SelectedCaseJson(TypedDict):
    """The role of a case, what changed of it, and the difference of its machine code, entry by entry.

    `code_note` is why instructions are not listed, or in what else the code differs.
    """

    role: CaseRole
    changed: list[ChangeReason]
    code_difference: list[EntryDifferenceJson]
    code_note: str | None


class SelectionJson(TypedDict):
    """What identified code, how many cases have each role, why all were measured (null: they were not), and seconds."""

    by: CodeIdentity
    roles: dict[CaseRole, int]
    changed: int
    everything: str | None
    seconds: dict[str, float]


# Of a case that every comparison on a device measures, the launch overhead.
ADDED: SelectedCaseJson = {"role": "control", "changed": [], "code_difference": [], "code_note": None}


def selected_json(one: SelectedCase) -> SelectedCaseJson:
    """Return one case as plain JSON values."""
    code = code_difference_json(one.differences)
    return {"role": one.role, "changed": list(one.reasons), "code_difference": code, "code_note": one.note}


def selection_json(selection: Selection) -> SelectionJson:
    """Return the selection without its cases as plain JSON values."""
    counted: dict[CaseRole, int] = {}
    for one in selection.cases:
        counted[one.role] = counted.get(one.role, 0) + 1
    return {
        "by": selection.by,
        "roles": counted,
        "changed": len(selection.changed),
        "everything": selection.everything,
        "seconds": {part: round(seconds, 3) for part, seconds in selection.seconds.items()},
    }


# The account of why a case takes its time as plain values, for pages and JSON.


class CodeAgainstJson(TypedDict):
    """Machine code next to that of an earlier run; `facts` are numbers before and after, null where not known."""

    before: str
    state: str
    facts: dict[str, list[int | None]]
    relaunched: bool
    entries: list[EntryDifferenceJson]
    note: str | None


class CountedNearJson(TypedDict):
    """Counters and source lines of another workload of the same implementation, where the case itself has none."""

    case: str
    label: str
    verdict: str
    counters: list[dict[str, Any]]
    lines: list[dict[str, Any]]


class WhyJson(TypedDict):
    """Bottleneck, counters, distance to the roof, fixes, source lines, code against an earlier run, and notes.

    Times are seconds, shares are of 1.
    """

    case: str
    bottleneck: str | None
    verdict: str
    basis: str
    counted_in: str | None
    counters: list[dict[str, Any]]
    seconds: float | None
    roof: dict[str, Any] | None
    fixes: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    code: CodeAgainstJson | None
    near: CountedNearJson | None
    notes: list[str]


def why_json(found: Why) -> WhyJson:
    """Return the account as plain JSON values."""
    return {
        "case": found.case,
        "bottleneck": found.bottleneck,
        "verdict": found.verdict,
        "basis": found.basis,
        "counted_in": found.counted_in,
        "counters": _counters(found.counters),
        "seconds": found.seconds,
        "roof": {**asdict(found.roof), "share": found.roof.share} if found.roof else None,
        "fixes": [asdict(one) for one in found.fixes],
        "lines": [asdict(one) for one in found.lines],
        "code": _code(found.code) if found.code else None,
        "near": _near(found.near) if found.near else None,
        "notes": list(found.notes),
    }


def _counters(counters: Iterable[WhyCounter]) -> list[dict[str, Any]]:
    return [{**asdict(one), "text": one.text} for one in counters]


def _near(one: CountedNear) -> CountedNearJson:
    return {
        "case": one.case,
        "label": one.label,
        "verdict": one.verdict,
        "counters": _counters(one.counters),
        "lines": [asdict(line) for line in one.lines],
    }


def _code(one: CodeAgainst) -> CodeAgainstJson:
    facts = {name: list(pair) for name, pair in one.facts.items()}
    return {
        "before": one.before,
        "state": one.state,
        "facts": facts,
        "relaunched": one.relaunched,
        "entries": code_difference_json(one.entries),
        "note": one.note,
    }


# What the comparison with the references found, in words.


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
