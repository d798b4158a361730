"""The gate in words that every output shares: one sentence, one line for each part."""

from collections import Counter

from prism_bench.analysis.gate.checks import Gate, GatePart
from prism_bench.report.machine import machine_name

_SENTENCES = {0: "All well", 1: "Something is bad", 2: "Nothing could be judged", 3: "Something cannot be trusted"}
PARTS = {
    "run": "The run itself", "budgets": "Budgets", "baseline": "Against the baseline",
    "last": "Against the last record", "trend": "Trend",
}  # fmt: skip


def headline(gate: Gate) -> str:
    """Return the verdict as one sentence with the counts, like `Something is bad: 3 of 142 checks`."""
    concerns, total = len(gate.concerns), len(gate.checks)
    of = f": {concerns} of {total} checks" if concerns else f": {total} checks" if total else ""
    return f"{_SENTENCES[gate.exit_code]}{of}."


def origin(gate: Gate) -> str:
    """Return where, when and from which sources the record was measured."""
    record = gate.record
    changed = " with uncommitted changes" if record.dirty else ""
    commit = f"commit {record.commit[:8]}{changed}" if record.commit else "no commit"
    return f"{machine_name(record)}, {record.backend} backend, {record.created} UTC, {commit}, {gate.path.name}"


def answers(part: GatePart) -> str:
    """Return answers with counts, like `142 met, 3 missed`, the most frequent first, or why there are none."""
    counts = Counter(check.answer for check in part.checks)
    counted = ", ".join(f"{count} {answer}" for answer, count in counts.most_common())
    return "; ".join(words for words in (counted, part.silent) if words) or "nothing to ask"


def title(part: GatePart) -> str:
    """Return the part's name as a heading."""
    return PARTS.get(part.name, part.name.capitalize())
