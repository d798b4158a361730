"""Plain values of what a run found, for JSON, comments on pull requests and pages."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypedDict

from prism_bench.analysis.bounds.why import CodeAgainst, Why, WhyCounter
from prism_bench.analysis.compare.comparison import ComparedCase, RecordComparison, comparison_findings
from prism_bench.analysis.compare.estimate import Estimate
from prism_bench.analysis.compare.noise import Control, Noise, shift_words
from prism_bench.analysis.compare.selection import CaseRole, ChangeReason, CodeIdentity, SelectedCase, Selection
from prism_bench.analysis.peers import peer_rows
from prism_bench.analysis.run_analysis import Reading
from prism_bench.analysis.summary import DERIVED, condition_texts, conditions, number, time_spent, window_seconds
from prism_bench.compilation.listing import EntryDifference
from prism_bench.record.run_record import CaseResult, RunRecord, encode
from prism_bench.record.store.points import Facts
from prism_bench.report.view import CaseView, case_views
from prism_bench.spec.metric import MEASURED, STAND_INS, timed_on
from prism_bench.units import bytes_text, rate_text
from prism_bench.workflows.tuning.crossover import (
    ALWAYS,
    MEASURED_PARTS,
    TARGETS,
    Batch,
    CrossoverRow,
    Measured,
    costs,
    largest_within,
    pick,
)

# What `--json` prints: the encoded record, with derived values next to what was measured.

_TEXT = ("bound", "best_peer", "invalid")


def view(reading: Reading) -> dict[str, Any]:
    """Return the record of a reading as plain JSON values.

    `timed` is whose the times are: `kernel`, or what the backend times in its place, such as `NumPy reference`.
    `headline` has a row for each group of labels and class of peers (`HeadlineRow`), `limits` holds the measured launch
    overhead and ceilings, `findings` what is wrong or worth knowing, `time_spent` the seconds of the run by phase and
    `window_seconds` those within measurement windows of kernels and of peers, if the record keeps them. Every case has
    a `derived` object: medians and spreads of its valid times, rates, shares, ratios, peers and budgets. Unknown values
    are null.
    """
    record, plain = reading.record, encode(reading.record)
    for case, shown in zip(plain["cases"], case_views(reading, edges=True), strict=True):
        case["derived"] = _derived(shown)
    spent = time_spent(record)
    windows = dict(zip(("kernels", "peers"), window_seconds(record), strict=True))
    return {
        **plain,
        "timed": timed_on(record.backend),
        "headline": reading.against_peers,
        "limits": {name: dict(getattr(reading.limits, name)) for name in ("floors", "ceilings", "sources")},
        "findings": [vars(finding) for finding in reading.findings],
        **({"time_spent": spent, "window_seconds": windows} if spent else {}),
    }


def _derived(shown: CaseView) -> dict[str, Any]:
    medians = {metric: shown.number(metric) for metric in MEASURED}
    return {
        "times": {
            metric: {"median": seconds, "spread": shown.number(f"{metric}_spread")}
            for metric, seconds in medians.items()
            if seconds is not None
        },
        **{name: shown.row[name] if name in _TEXT else shown.number(name) for name in DERIVED},
        "throttled": int(shown.row["throttled"]),
        "peers": peer_rows(shown.case),
        "budgets": [
            {
                "from": judged.source,
                "metric": judged.budget.metric,
                "at_most": judged.budget.at_most,
                "at_least": judged.budget.at_least,
                "value": judged.value,
                "interval": judged.interval,
                "verdict": judged.verdict,
            }
            for judged in shown.budgets
        ],
    }


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


def backend_name(record: RunRecord | Facts) -> str:
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


# Complaints that differ in nothing but numbers, each once.

_NUMBER = re.compile(r"-?\b(?:nan|inf|\d[\d.,]*(?:e[+-]?\d+)?)")


@dataclass
class Alike:
    """Complaints that differ in nothing but numbers and the case: the first one's text, and the cases of all."""

    kind: str
    text: str
    cases: list[str] = field(default_factory=list[str])
    untimed: list[str] = field(default_factory=list[str])


def alike(complaints: Iterable[tuple[str, str, str]], because: str = "") -> list[Alike]:
    """Return complaints (kind, case, text) by what they have in common, in their order.

    One that begins with `because` repeats another one: it belongs to that one's `untimed`.
    """
    groups: dict[str, Alike] = {}
    for kind, case, text in sorted(
        complaints, key=lambda complaint: bool(because) and complaint[2].startswith(because)
    ):
        repeats = bool(because) and text.startswith(because)
        key = _common(text.removeprefix(because) if repeats else text, case)
        group = groups.setdefault(key, Alike(kind, text))
        (group.untimed if repeats and group.text != text else group.cases).append(case)
    return list(groups.values())


def _common(text: str, case: str) -> str:
    """Return what a complaint has in common with those on other workloads of its kernel.

    That is its first line without numbers and without the workload; the whole text where that line only opens it.
    """
    first = text.partition("\n")[0]
    kernel = case.partition("[")[0]
    plain = re.sub(rf"{re.escape(kernel)}\[[^\[\]]*\]", kernel, text if first.endswith(":") else first)
    return _NUMBER.sub("#", plain)


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
    return [_entry(entry) for entry in entries]


def _entry(entry: EntryDifference) -> EntryDifferenceJson:
    sides = entry.before, entry.after
    first = entry.first
    return {
        "entry": entry.entry,
        "state": "added" if entry.before is None else "removed" if entry.after is None else "changed",
        "registers": [side.resources.registers if side else None for side in sides],
        "spill_bytes": [side.spill_bytes if side else None for side in sides],
        "stack_bytes": [side.resources.stack_bytes if side else None for side in sides],
        "shared_bytes": [side.resources.shared_bytes if side else None for side in sides],
        "code_bytes": [side.code_bytes if side else None for side in sides],
        "instructions": [side.instructions if side else None for side in sides],
        "kinds": {kind: list(counts) for kind, counts in entry.kinds.items()},
        "first_difference": first and {"block": first.number, "before": [*first.before], "after": [*first.after]},
    }


_FACTS = ("registers", "spill_bytes", "stack_bytes", "shared_bytes", "code_bytes", "instructions")


def changes_of(entry: EntryDifferenceJson) -> list[str]:
    """Return in words every number of the entry that changed: `registers 32 -> 40`, `fp32 12 -> 14 (+2)`."""
    facts: list[tuple[str, Sequence[int | None]]] = [(name.replace("_", " "), entry[name]) for name in _FACTS]
    changes = [_change(name, *pair) for name, pair in facts if pair[0] != pair[1]]
    return changes + [_change(kind, *pair) for kind, pair in entry["kinds"].items() if pair[0] != pair[1]]


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


class _SelectionJson(TypedDict):
    """What identified code, how many cases have each role, why all were measured (null: they were not), and seconds."""

    by: CodeIdentity
    roles: dict[CaseRole, int]
    changed: int
    everything: str | None
    seconds: dict[str, float]


# Of a case that every comparison on a device measures, the launch overhead.
ADDED: SelectedCaseJson = {"role": "control", "changed": [], "code_difference": [], "code_note": None}


def _selected_json(case: SelectedCase) -> SelectedCaseJson:
    """Return one case as plain JSON values."""
    code = code_difference_json(case.differences)
    return {"role": case.role, "changed": list(case.reasons), "code_difference": code, "code_note": case.note}


def _selection_json(selection: Selection) -> _SelectionJson:
    """Return the selection without its cases as plain JSON values."""
    counted: dict[CaseRole, int] = {}
    for case in selection.cases:
        counted[case.role] = counted.get(case.role, 0) + 1
    return {
        "by": selection.by,
        "roles": counted,
        "changed": len(selection.changed),
        "everything": selection.everything,
        "seconds": {part: round(seconds, 3) for part, seconds in selection.seconds.items()},
    }


# A comparison of two records, and noise floors.

# Of machine code and launches, as a record has them on both sides: null where it does not know.
_RESOURCES = ("language", "compiler", "registers", "spill_bytes", "shared_bytes", "launches", "plan")


def comparison_json(
    comparison: RecordComparison, options: tuple[str | None, Sequence[str], str | None] | None = None
) -> dict[str, Any]:
    """Return the comparison as plain JSON values; unknown ones are null.

    `options` are the catalogue, the labels and the metric that the command line named, by which it is repeated.
    """
    control, selection = comparison.control, comparison.selection
    roles = {case.case: _selected_json(case) for case in selection.cases} if selection else {}
    return {
        "a": comparison.names[0],
        "b": comparison.names[1],
        "backend": comparison.backend,
        "timed": timed_on(comparison.backend),
        "device": comparison.device,
        "commits": list(comparison.commits),
        "complete": comparison.complete,
        "counts": dict(comparison.counts()),
        "sentence": comparison.sentence(),
        "cases": [
            {**_compared_case(case), **roles.get(case.case, ADDED if selection else {})} for case in comparison.cases
        ],
        "control": _control(control),
        "notes": list(comparison.notes),
        **({"options": {"catalogue": options[0], "labels": list(options[1]), "metric": options[2]}} if options else {}),
        "findings": [vars(finding) for finding in comparison_findings(comparison)],
        **({"selection": _selection_json(selection)} if selection else {}),
    }


def _control(control: Control) -> dict[str, Any]:
    """Return the control: `shift` is the median ratio of its cases, `factor` + `offset` / seconds is divided out."""
    return {
        "cases": control.cases,
        "changed": list(control.changed),
        "chance": control.chance,
        "shift": control.shift,
        "widening": control.widening,
        "excess": control.excess,
        "used": control.used,
        "factor": control.fit.factor,
        "offset": control.fit.offset,
        "divided_out": shift_words(control),
    }


def _compared_case(case: ComparedCase) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "case": case.case,
        "metric": case.metric,
        "verdict": case.verdict,
        "reason": case.reason,
        "identical": case.identical,
        "seconds": list(case.seconds),
        "build_change": case.build_change.words if case.build_change else None,
        **{name: [code.get(name) for code in case.codes] for name in _RESOURCES},
    }
    if case.judgement is None:
        return plain
    judgement = case.judgement
    return {
        **plain,
        **_estimate(judgement.estimate),
        "p": judgement.estimate.p,
        "by_times": judgement.verdict,
        "floor": _finite(judgement.floor),
        "within": judgement.within,
        "shift": judgement.shift.ratio,
        "cycles": _estimate(judgement.in_cycles) if judgement.in_cycles else None,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.interval()
    return {"ratio": estimate.ratio, "low": low, "high": _finite(high)}


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


def noise_json(noise: Noise) -> dict[str, Any]:
    """Return the noise floors as plain JSON values, one entry per case and metric."""
    floors = [{"case": case, "metric": metric, **asdict(floor)} for (case, metric), floor in noise.floors.items()]
    plain = {key: value for key, value in vars(noise).items() if key != "floors"}
    return {**plain, "timed": timed_on(noise.backend), "false_share": noise.false_share, "floors": floors}


# Measured policies: which form, window or batch is best.


def measured_json(
    measured: Measured, parts: Sequence[str] = MEASURED_PARTS, tolerance: float = 1e-3
) -> dict[str, object]:
    """Return whose measurements they are, the rows of the `parts`, and what follows from them.

    Products are those of float32 operands within `tolerance`; `halves` has the same of float16 operands.
    """
    plain = {key: getattr(measured, key) for key in ("machine", "device", "backend", "toolchain", "created")}
    plain |= {part: [asdict(row) for row in getattr(measured, part)] for part in parts}
    if "matmul" in parts and measured.matmul:
        plain |= _products_json(measured.matmul, "float32", tolerance)
        plain["halves"] = _products_json(measured.matmul, "float16", tolerance)
    if "batches" in parts and measured.batches:
        targets = batch_targets(measured.batches).items()
        plain["targets"] = [{"seconds": target, "measured": batch} for target, batch in targets]
    return plain


def _products_json(rows: Sequence[CrossoverRow], operands: str, tolerance: float) -> dict[str, object]:
    """Return the cost of always taking one form, the form picked for each shape, and the seconds of every form."""
    picked = [pick([row], row.shape, operands=operands, tolerance=tolerance) for row in rows]
    return {
        "policies": [asdict(cost) for cost in costs(rows, ALWAYS, operands, tolerance)],
        "picked": [asdict(choice) for choice in picked],
        "totals": [{form: row.total(form, operands) for form in row.seconds} for row in rows],
    }


def batch_targets(rows: Sequence[Batch]) -> dict[float, int | None]:
    """Return the largest measured batch within each target of latency in seconds, None where no batch is."""
    seconds = {row.batch: row.seconds for row in rows}
    return {target: largest_within(seconds, target) for target in TARGETS}


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
    """Counters and source lines of another workload of the same implementation, for a case without counters."""

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
    tables: list[str]
    notes: list[str]


def why_json(account: Why) -> WhyJson:
    """Return the account as plain JSON values."""
    return {
        "case": account.case,
        "bottleneck": account.bottleneck,
        "verdict": account.verdict,
        "basis": account.basis,
        "counted_in": account.counted_in,
        "counters": _counters(account.counters),
        "seconds": account.seconds,
        "roof": {**asdict(account.roof), "share": account.roof.share} if account.roof else None,
        "fixes": [asdict(item) for item in account.fixes],
        "lines": [asdict(item) for item in account.lines],
        "code": _code(account.code) if account.code else None,
        "near": (
            {
                "case": account.near.case,
                "label": account.near.label,
                "verdict": account.near.verdict,
                "counters": _counters(account.near.counters),
                "lines": [asdict(line) for line in account.near.lines],
            }
        )
        if account.near
        else None,
        "tables": list(account.tables),
        "notes": list(account.notes),
    }


def _counters(counters: Iterable[WhyCounter]) -> list[dict[str, Any]]:
    return [{**asdict(counter), "text": counter.text} for counter in counters]


def _code(code: CodeAgainst) -> CodeAgainstJson:
    facts = {name: list(pair) for name, pair in code.facts.items()}
    return {
        "before": code.before,
        "state": code.state,
        "facts": facts,
        "relaunched": code.relaunched,
        "entries": code_difference_json(code.entries),
        "note": code.note,
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
