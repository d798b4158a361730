"""The verdict of a run at a glance: one sentence, the counts behind it, and three numbers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.headline import BEST
from prism_bench.analysis.reading import Reading, middle
from prism_bench.analysis.summary import number
from prism_bench.report.gate.words import counted_text
from prism_bench.report.peers import labels_text, shown_rows
from prism_bench.units import count_text, share_text

_TONES = {"bad": "bad", "untrusted": "bad", "note": "muted"}


@dataclass(frozen=True)
class Tile:
    """One number of the run with the words around it."""

    title: str
    value: str
    words: str


def headline(reading: Reading) -> str:
    """Return the run's verdict as one sentence."""
    total, trusted = len(reading.cases), reading.trusted
    if reading.record.imported:  # a case that its tool verified and did not time is ok
        trusted = min(trusted, sum(bool(case.measurements) for case in reading.cases))
    if not total:
        return "Nothing was measured."
    cases = "case" if total == 1 else "cases"
    verbs = _verbs(reading)
    if trusted == total:
        return f"The one case {verbs}." if total == 1 else f"All {total} {cases} {verbs}."
    return f"{trusted} of {total} {cases} {verbs}."


def _verbs(reading: Reading) -> str:
    if reading.record.imported:
        return f"timed by {reading.record.backend}, and not verified here"
    timed = any(number(row[metric]) is not None for row in reading.rows for metric in ("cold_time", "wall_time"))
    if not timed:
        return "verified"
    stand_in = reading.record.stand_in
    return f"verified and timed on the {stand_in.name}" if stand_in else "verified and timed"


def chips(reading: Reading) -> list[tuple[str, str, str]]:
    """Return words, tone and kind for everything that was found, by kind, gravest first."""
    counts = Counter((finding.kind, finding.gravity) for finding in reading.findings)
    return [(_counted(kind, count), _TONES[gravity], kind) for (kind, gravity), count in counts.items()]


def _counted(kind: str, count: int) -> str:
    if kind == "incomplete":
        return "run cut short"
    if kind == "missed":
        return f"{count_text(count, 'budget')} missed"
    return counted_text(count, kind)


def tiles(reading: Reading, budgets: Sequence[BudgetVerdict] | None = None) -> list[Tile]:
    """Return three numbers: share of the limit, cases slower than a peer, budgets. A dash marks a missing one.

    The `budgets` are those of the selected cases, unless others are given.
    """
    judged = reading.budgets if budgets is None else budgets
    return [_limit_tile(reading), _peer_tile(reading), _budget_tile(judged)]


def _limit_tile(reading: Reading) -> Tile:
    shares = reading.busy_shares
    if not shares:
        return Tile("Of the machine's limit", "–", "no case was timed against a measured ceiling")
    words = f"median of {count_text(len(shares), 'case')} that memory or arithmetic limits"
    return Tile("Of the machine's limit", share_text(middle(shares)), words)


def _peer_tile(reading: Reading) -> Tile:
    """Return how many cases a peer beats, at S1 and S2 where those were measured; ratios are by class, not here."""
    best = next((row for row in shown_rows(reading.against_peers) if row["peers"] == BEST), None)
    if best is None:
        return Tile("Slower than a peer", "–", "no peer was timed in this run")
    words = f"cases at {labels_text(best)}, against the best peer of each"
    return Tile("Slower than a peer", f"{best['below']} of {best['cases']}", words)


def _budget_tile(budgets: Sequence[BudgetVerdict]) -> Tile:
    verdicts = [one.verdict for one in budgets]
    if not verdicts:
        return Tile("Budgets", "–", "none could be judged")
    rest = [f"{verdicts.count(word)} {word}" for word in ("undecided", "unmeasured") if verdicts.count(word)]
    return Tile("Budgets", f"{verdicts.count('met')}/{len(verdicts)}", "; ".join(["met", *(rest or ["0 unmeasured"])]))
