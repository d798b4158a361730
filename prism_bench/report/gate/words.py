"""The gate in words that every output shares: one sentence, one line for each part."""

from collections import Counter
from collections.abc import Collection, Iterator

from prism_bench.analysis.gate.checks import Gate, GateCheck, GatePart
from prism_bench.record.run_record import STATUSES
from prism_bench.report.machine import backend_name, backend_text, machine_name
from prism_bench.units import count_text

PARTS = {
    "run": "The run itself", "budgets": "Budgets", "baseline": "Against the baseline",
    "last": "Against the last record", "trend": "Trend",
}  # fmt: skip
_COMPARED = ("the last run", "an earlier run", "the baseline")
_THAN = {"last": "when last measured", "baseline": "in the baseline"}  # a case's last run may be an earlier one
_AGAINST = {"last": "the last measurement", "baseline": "the baseline"}
UNDECIDED = "Undecided"  # leads the sentence of a gate that passes and of which most is open
_SLOWER, _FASTER = ("slower", "degraded"), ("faster",)
_Piece = tuple[str, str]  # the word that leads a sentence which begins with it, and the piece


def headline(gate: Gate) -> str:
    """Return the verdict as one sentence: `Worse: 2 cases slower than when last measured, 3 budgets missed.`, say.

    The gravest comes first. Each comparison is named; a gate that misses budgets and nothing else reports what became
    faster, too, and one without concerns that, or that most of a comparison is undecided.
    """
    if gate.exit_code == 2:
        return f"Nothing was timed: {gate.untimed}." if gate.untimed else "Nothing could be judged."
    wrong, missed = [*_untrusted(gate), *_broken(gate), *_slower(gate)], _missed(gate)
    better = [piece for piece in _well(gate) if piece[0] == "Better"] if missed and not wrong else []
    pieces = [*wrong, *missed, *better] or _well(gate)
    if not pieces:
        return f"No problem: {_passed(gate)}; nothing to compare with yet."
    return f"{pieces[0][0]}: {', '.join(words for _, words in pieces)}."


def is_undecided(gate: Gate) -> bool:
    """Return whether the gate passes while a comparison leaves most of its cases open: that is no good news."""
    return headline(gate).startswith(f"{UNDECIDED}:")


def _untrusted(gate: Gate) -> list[_Piece]:
    found = [(part, check) for part in gate.parts for check in part.checks if check.gravity == "untrusted"]
    cases = {check.case for _, check in found if check.case}
    against = {_compared_with(part, check) for part, check in found if not check.case}
    pieces = [f"{count_text(len(cases), 'case')} cannot be trusted"] if cases else []
    pieces += [f"the comparison with {words} cannot be trusted" for words in _COMPARED if words in against]
    pieces += ["the run cannot be trusted"] if against - set(_COMPARED) else []
    return [("Untrusted", words) for words in pieces]


def _compared_with(part: GatePart, check: GateCheck) -> str:
    """Return which record the check of a comparison is about; the part's name where it compares none."""
    if part.name != "last":
        return _AGAINST["baseline"] if part.name == "baseline" else part.name
    newest = next((one.against for one in part.checks if one.case), check.against)
    return "the last run" if check.against == newest else "an earlier run"


def _broken(gate: Gate) -> list[_Piece]:
    """Return how many cases did not end well, by status, and how often anything else is bad about the run."""
    bad = Counter(check.answer for part in _parts(gate, "run") for check in part.checks if check.gravity == "bad")
    return [("Wrong" if word in ("wrong", "failed") else "Broken", f"{count_text(count, 'case')} {word}"
             if word in STATUSES else f"{count} {word}") for word, count in bad.most_common()]  # fmt: skip


def _slower(gate: Gate) -> list[_Piece]:
    found = [f"{count_text(len(cases), 'case')} slower than {words}" for words, cases in _changed(gate, _SLOWER)]
    steps = sum(check.gravity == "bad" for part in _parts(gate, "trend") for check in part.checks)
    shifts = sum(check.gravity == "bad" and check.answer == "shift" for check in gate.checks)
    found += [f"{count_text(steps, 'step')} for the worse in the trend"] if steps else []
    found += ["other software made every case slower"] if shifts else []
    return [("Worse", words) for words in found]


def _missed(gate: Gate) -> list[_Piece]:
    missed = sum(check.gravity == "bad" for part in _parts(gate, "budgets") for check in part.checks)
    return [("Below budget", f"{count_text(missed, 'budget')} missed")] if missed else []


def _well(gate: Gate) -> list[_Piece]:
    """Return what became faster, else what was compared and is the same; nothing where nothing was compared."""
    faster = [f"{count_text(len(cases), 'case')} faster than {words}" for words, cases in _changed(gate, _FASTER)]
    if faster:
        left = _undecided(gate) - {case for _, cases in _changed(gate, _FASTER) for case in cases}
        more = [f"{len(left)} undecided"] if left else []
        return [("Better", words) for words in [*faster, "none slower", *more]]
    pieces = [piece for name in _THAN if (piece := _same(gate, name))]
    level = any(check.answer == "level" and check.answered for part in _parts(gate, "trend") for check in part.checks)
    pieces += [("No change", "no step in the trend")] if level else []
    return sorted(pieces, key=lambda piece: piece[0] != UNDECIDED)


def _same(gate: Gate, name: str) -> _Piece | None:
    """Return how many cases are the same as in the record compared with, and how many are undecided.

    A comparison that decides fewer cases than it leaves open shows no change of none: it is undecided. The factor of
    the baseline, which a case keeps as `steady`, decides nothing about a case that statistics leave open.
    """
    undecided = _answered(gate, name, ("inconclusive",))
    same = len(_answered(gate, name, ("same", "steady")) - undecided)
    if len(undecided) > same:
        settled = f", {same} as fast" if same else ""
        return UNDECIDED, f"{count_text(len(undecided), 'case')} compared with {_AGAINST[name]}{settled}"
    if not same:
        return None
    open_words = f", {len(undecided)} undecided" if undecided else ""
    return "No change", f"{count_text(same, 'case')} as fast as {_THAN[name]}{open_words}"


def _undecided(gate: Gate) -> set[str]:
    """Return the cases that a comparison leaves open."""
    return {case for name in _THAN for case in _answered(gate, name, ("inconclusive",))}


def _answered(gate: Gate, name: str, answers: Collection[str]) -> set[str]:
    """Return the cases that have one of the answers in the part of that name."""
    checks = (check for part in _parts(gate, name) for check in part.checks)
    return {check.case for check in checks if check.case and check.answer in answers}


def _changed(gate: Gate, answers: Collection[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield each record compared with and the cases that have one of the answers against it; remarks do not count."""
    for name, words in _THAN.items():
        checks = [check for part in _parts(gate, name) for check in part.checks if not check.remark]
        cases = {check.case for check in checks if check.case and check.answer in answers}
        if cases:
            yield words, cases


def _passed(gate: Gate) -> str:
    """Return how many cases ended well and how many budgets are met."""
    found = {"case": ("run", "ok"), "budget": ("budgets", "met")}
    counts = {
        word: sum(check.answer == answer and not check.remark for part in _parts(gate, name) for check in part.checks)
        for word, (name, answer) in found.items()
    }
    return ", ".join(f"{count_text(count, word)} {found[word][1]}" for word, count in counts.items() if count)


def _parts(gate: Gate, name: str) -> list[GatePart]:
    return [part for part in gate.parts if part.name == name]


def origin(gate: Gate) -> str:
    """Return where, when and from which sources the record was measured."""
    record = gate.record
    changed = " with uncommitted changes" if record.dirty else ""
    commit = f"commit {record.commit[:8]}{changed}" if record.commit else "no commit"
    backend = backend_text(backend_name(record))
    return f"{machine_name(record)}, {backend}, {record.created} UTC, {commit}, {gate.path.name}"


def answers(part: GatePart) -> str:
    """Return answers with counts, like `142 met, 3 missed`, the most frequent first, or why there are none."""
    counts = Counter(check.answer for check in part.checks)
    counted = ", ".join(counted_text(count, answer) for answer, count in counts.most_common())
    return "; ".join(words for words in (counted, part.silent) if words) or "nothing to ask"


_NOUNS = {"records": "note on the records", "evidence": "note on evidence", "shift": "shift of the machine",
          "empty": "empty cell", "host": "note on the host"}  # fmt: skip
_PLURALS = {"records": "notes on the records", "evidence": "notes on evidence", "shift": "shifts of the machine",
            "host": "notes on the host"}  # fmt: skip


def counted_text(count: int, answer: str) -> str:
    """Return an answer with its count: `3 missed`, `2 notes on evidence`."""
    return count_text(count, _NOUNS[answer], _PLURALS.get(answer)) if answer in _NOUNS else f"{count} {answer}"


def title(part: GatePart) -> str:
    """Return the part's name as a heading."""
    return PARTS.get(part.name, part.name.capitalize())
