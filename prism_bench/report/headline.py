"""Headline of a run in words: its sentence, the counts and numbers behind it, and the kernels against their peers."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prism_bench.analysis.gate.budgets import BudgetVerdict
from prism_bench.analysis.peers import (
    BEST,
    LARGE,
    NOT_RECORDED,
    UNSTABLE,
    UNSTABLE_MARK,
    HeadlineRow,
    PeerRow,
    RacedCase,
)
from prism_bench.analysis.run_analysis import Finding, Reading, middle
from prism_bench.analysis.summary import number
from prism_bench.units import count_text, ratio_text, share_text, time_text

# The verdict of a run at a glance: one sentence, the counts behind it, and three numbers.

_NOUNS = {"records": "note on the records", "evidence": "note on evidence", "shift": "shift of the machine",
          "empty": "empty cell", "ok": "check ok", "host": "note on the host"}  # fmt: skip
_PLURALS = {"records": "notes on the records", "evidence": "notes on evidence", "shift": "shifts of the machine",
            "ok": "checks ok", "host": "notes on the host"}  # fmt: skip


def headline(reading: Reading) -> str:
    """Return the run's verdict as one sentence."""
    total, trusted = len(reading.kernels), reading.trusted
    if reading.record.imported:  # a case that its tool verified and did not time is ok
        trusted = min(trusted, sum(bool(case.measurements) for case in reading.cases))
    if not total:
        return "Nothing was measured."
    verbs = _verbs(reading)
    if trusted == total:
        return f"The one case {verbs}." if total == 1 else f"All {count_text(total, 'case')} {verbs}."
    return f"{trusted} of {count_text(total, 'case')} {verbs}."


def _verbs(reading: Reading) -> str:
    if reading.record.imported:
        return f"timed by {reading.record.backend}, and not verified here"
    timed = any(number(row[metric]) is not None for row in reading.rows for metric in ("cold_time", "wall_time"))
    if not timed:
        return "verified"
    stand_in = reading.record.stand_in
    return f"verified and timed on the {stand_in.name}" if stand_in else "verified and timed"


def chips(reading: Reading) -> list[tuple[str, str, str]]:
    """Return text, tone and kind for everything that was found, by kind, gravest first."""
    counts = Counter((finding.kind, _tone(finding)) for finding in reading.findings)
    return [(_chip_text(kind, count), tone, kind) for (kind, tone), count in counts.items()]


def _tone(finding: Finding) -> str:
    """Return the colour of a finding: red is for kernels."""
    tone = {"bad": "bad", "untrusted": "warn", "note": "muted"}[finding.gravity]
    return "warn" if tone == "bad" and not finding.case else tone


def _chip_text(kind: str, count: int) -> str:
    if kind == "incomplete":
        return "run cut short"
    return f"{count_text(count, 'budget')} missed" if kind == "missed" else counted_text(count, kind)


def counted_text(count: int, answer: str) -> str:
    """Return an answer with its count: `3 missed`, `2 notes on evidence`."""
    return count_text(count, _NOUNS[answer], _PLURALS.get(answer)) if answer in _NOUNS else f"{count} {answer}"


@dataclass(frozen=True)
class Tile:
    """One number of the run with the words around it."""

    title: str
    value: str
    words: str


def tiles(reading: Reading, budgets: Sequence[BudgetVerdict] | None = None) -> list[Tile]:
    """Return three numbers: share of the limit, cases slower than a peer, budgets. A dash marks a missing one.

    The `budgets` are those of the selected cases, unless others are given. The cases slower than a peer are those at S1
    and S2 if these were measured; ratios are by class, not here.
    """
    limit, peer = "Of the machine's limit", "Slower than a peer"
    if shares := reading.busy_shares:
        text = f"median of {count_text(len(shares), 'case')} that memory or arithmetic limits"
        limit_tile = Tile(limit, share_text(middle(shares)), text)
    else:
        limit_tile = Tile(limit, "–", "no case was timed against a measured ceiling")
    if best := next((row for row in shown_rows(reading.against_peers) if row["peers"] == BEST), None):
        text = f"cases at {labels_text(best)}, against the best peer of each"
        peer_tile = Tile(peer, f"{best['below']} of {best['cases']}", text)
    else:
        peer_tile = Tile(peer, "–", "no peer was timed in this run")
    return [limit_tile, peer_tile, _budget_tile(reading.budgets if budgets is None else budgets)]


def _budget_tile(budgets: Sequence[BudgetVerdict]) -> Tile:
    verdicts = [budget.verdict for budget in budgets]
    if not verdicts:
        return Tile("Budgets", "–", "none could be judged")
    rest = [f"{verdicts.count(word)} {word}" for word in ("undecided", "unmeasured") if verdicts.count(word)]
    return Tile("Budgets", f"{verdicts.count('met')}/{len(verdicts)}", "; ".join(["met", *(rest or ["0 unmeasured"])]))


# Ratios as text.


def times_text(ratio: float) -> str:
    """Return a ratio as text: `0.90x`, `31.8x`, `2,519x`; two decimals below ten, so that ratios near one line up."""
    if ratio >= 999.5:
        return f"{ratio:,.0f}x"
    return f"{ratio:.2f}x" if ratio < 9.995 else ratio_text(ratio)


# The kernels against their peers by class, in the words that the terminal, the site and the README share.

_MEANING = (
    "Time of the best peer of each class over the kernel's, cold: above 1.00 the kernel is faster. Means are geometric."
)
LAUNCHES = "At S0 launch overhead is compared."
_UNKNOWN = f"Class {NOT_RECORDED}: the record does not name the class of these peers, so they have no mean."
UNSTABLE_MEANING = (
    f"{UNSTABLE_MARK} marks an unstable peer: the medians of its processes differ by more than {UNSTABLE * 100:.0f} %, "
    "and its fastest process counts"
)
UNSTABLE_TIME = (
    f"{UNSTABLE_MARK} marks an unstable time: the medians of its processes differ by more than {UNSTABLE * 100:.0f} %"
)


@dataclass(frozen=True)
class HeadlineText:
    """The headline in words: the `rows` to show, `notes` on what they mean, the `large` ratios with their title."""

    rows: tuple[HeadlineRow, ...]
    notes: tuple[str, ...]
    large: tuple[str, ...]
    large_title: str = f"Above {LARGE:.0f}x, by name and counted in the table"


def headline_text(rows: Sequence[HeadlineRow], *, brief: bool = False) -> HeadlineText:
    """Return the headline in words, without rows where no peer was timed; a `brief` one has S1 and S2 together only."""
    shown = shown_rows(rows)
    if brief:
        together = {label for row in shown if len(row["labels"]) > 1 for label in row["labels"]}
        shown = [row for row in shown if len(row["labels"]) > 1 or not together.intersection(row["labels"])]
    notes = {
        _MEANING: True,
        LAUNCHES: any(row["labels"] == ["S0"] for row in shown),
        _UNKNOWN: any(row["peers"] == NOT_RECORDED for row in shown),
        f"{UNSTABLE_MEANING}.": any(raced["unstable"] for row in shown for raced in (row["worst"], *row["large"])),
    }
    return HeadlineText(tuple(shown), tuple(note for note, needed in notes.items() if needed), _large(shown))


def shown_rows(rows: Sequence[HeadlineRow]) -> list[HeadlineRow]:
    """Return the rows without a group of two labels where only one of them was measured."""
    single = {row["labels"][0] for row in rows if len(row["labels"]) == 1}
    return [row for row in rows if len(row["labels"]) == 1 or set(row["labels"]) <= single]


def _large(rows: Sequence[HeadlineRow]) -> tuple[str, ...]:
    """Return the ratios above `LARGE`, as `image_segmentation, torch: S2 77.5x, S1 77.0x`, the largest first."""
    large = {(raced["case"], raced["peer"]): raced for row in rows if row["peers"] != BEST for raced in row["large"]}
    ratios: dict[str, list[str]] = defaultdict(list)
    for raced in sorted(large.values(), key=lambda raced: -raced["ratio"]):
        name = f"{raced['implementation']}, {peer_text(raced)}"
        ratios[name].append(f"{raced['label']} {times_text(raced['ratio'])}")
    return tuple(f"{name}: {', '.join(each)}" for name, each in ratios.items())


def labels_text(row: HeadlineRow) -> str:
    """Return `S1 and S2`."""
    return " and ".join(row["labels"])


def mean_text(row: HeadlineRow) -> str:
    """Return the mean as `1.04x`; a dash without a mean."""
    return "-" if row["mean"] is None else times_text(row["mean"])


def case_text(raced: RacedCase) -> str:
    """Return `matmul S1, torch_compiled~`."""
    return f"{raced['implementation']} {raced['label']}, {peer_text(raced)}"


def peer_text(raced: RacedCase) -> str:
    """Return the peer's name, with the mark of an unstable one and whether it is a poor way."""
    return f"{raced['peer']}{UNSTABLE_MARK if raced['unstable'] else ''}{' (poor way)' if raced['poor'] else ''}"


# One peer of a case in words.


def how_text(row: PeerRow) -> str:
    """Return how the peer was called, and everything that a reader has to know about its time or its absence."""
    library = " ".join(str(part) for part in (row["library"], row["version"]) if part)
    counts = [_count(row["calls"], "call"), _count(row["launches"], "launch", "launches")]
    counts += [_count(row["breaks"], "graph break")] if row["breaks"] else []
    called = ", ".join(filter(None, [library, row["form"], *counts]))
    return "; ".join(filter(None, [called, *_limits(row), *row["notes"]]))


def _count(count: int | None, noun: str, several: str | None = None) -> str | None:
    return None if count is None else count_text(count, noun, several)


def _limits(row: PeerRow) -> Iterator[str | None]:
    """Yield why the time is missing, or what a reader has to know about it."""
    if row["seconds"] is None:
        yield f"not timed: {row['reason']}"
    elif row["unstable"]:
        yield "unstable: {} to {}".format(*map(time_text, row["unstable"]))
    left_out = row["seconds"] is not None and not row["counts"]
    yield f"poor way: {row['poor']}" + (" (not counted)" if left_out else "") if row["poor"] else None
    yield f"enqueued as a {row['enqueued']}" if row["enqueued"] else None
    yield f"work: {row['work']}" if row["work"] else None
    yield f"precision: {row['precision']}" if row["precision"] else None
