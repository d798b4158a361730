"""Comparison across boards: what of a difference is the boards', by the control or by what the history knows of them.

Cases are put together by the two boards that measured their sides. Those on one board have the control that they are;
so has each pair of boards with enough cases of identical code. Elsewhere the factor between the boards is divided out,
with its error and with what two runs of one board differ by. Where it is not known, the error is that of boards that
nobody compared, so that no change smaller than these is called one.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import hypot, sqrt

from prism_bench.analysis.boards.factors import BoardFactor
from prism_bench.analysis.boards.known import KnownBoards
from prism_bench.analysis.compare.control import Control, control_of
from prism_bench.analysis.compare.verdict import Judgement, MachineShift, Pair
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.units import count_text, share_text

BoardsOfPair = tuple[str, str]
UNLEARNED = "no history of these boards was read"


@dataclass(frozen=True)
class Crossings:
    """The cases whose sides two boards measured: both UUIDs by case, and the `factors` between them where needed."""

    boards: Mapping[str, BoardsOfPair] = field(default_factory=dict[str, BoardsOfPair])
    factors: Mapping[str, BoardFactor] = field(default_factory=dict[str, BoardFactor])

    def reason(self, case: str, judgement: Judgement) -> str | None:
        """Return why no verdict on the case is given, where it is for the boards; None otherwise."""
        factor = self.factors.get(case)
        if factor is None or judgement.verdict != "inconclusive":
            return None
        one, other = self.boards[case]
        if not factor.known:
            return f"withheld: measured on two boards, {one} and {other}, whose factor is not known: {factor.reason}"
        return f"{judgement.reason}; the factor of the boards {one} and {other} is known to {share_text(factor.reach)}"

    def notes(self) -> list[str]:
        """Return for each pair of boards how its cases were compared."""
        counts = Counter(self.boards[case] for case in self.factors)
        return [self._note(boards, count) for boards, count in counts.items()]

    def _note(self, boards: BoardsOfPair, count: int) -> str:
        own = [factor for case, factor in self.factors.items() if self.boards[case] == boards]
        known = sorted(factor.ratio for factor in own if factor.known)
        were = "was" if count == 1 else "were"
        words = f"{count_text(count, 'case')} {were} measured on board {boards[0]} and on board {boards[1]}"
        if not known:
            return f"{words}: their factor is not known ({own[0].reason}), and verdicts are withheld"
        left = f"; of {count - len(known)} it is not known" if len(known) < count else ""
        return f"{words}: divided by their factor, {known[len(known) // 2]:.3f} in the middle{left}"


def crossed(cases: Mapping[str, tuple[CaseResult, CaseResult]], a: RunRecord, b: RunRecord) -> dict[str, BoardsOfPair]:
    """Return the boards of the cases whose sides two known boards measured."""
    found: dict[str, BoardsOfPair] = {}
    for name, (one, other) in cases.items():
        first, second = a.board_of(one), b.board_of(other)
        if first and second and first != second:
            found[name] = first, second
    return found


def shifts_of(
    pairs: Mapping[str, Pair], identical: Collection[str], boards: Mapping[str, BoardsOfPair],
    known: tuple[KnownBoards | None, Mapping[str, str]],
) -> tuple[Control, float, dict[str, MachineShift], Crossings]:  # fmt: skip
    """Return the control, the usual widening of errors, what to divide each pair by, and what crosses boards.

    The control is that of the group with the most cases, counting those of all groups that have one. `known` are the
    boards' factors, and the metric of each case.
    """
    groups: dict[BoardsOfPair | None, list[str]] = {}
    for case in pairs:
        groups.setdefault(boards.get(case), []).append(case)
    controls = {group: control_of({case: pairs[case] for case in cases if case in identical})
                for group, cases in groups.items()}  # fmt: skip
    shifts: dict[str, MachineShift] = {}
    factors: dict[str, BoardFactor] = {}
    for group, cases in groups.items():
        control = controls[group]
        for case in cases:
            if control.used:
                shifts[case] = control.fit.at(pairs[case].a.typical)
            elif group is None:
                shifts[case] = MachineShift()
            else:
                factors[case] = _factor(case, group, known)
                shifts[case] = _shift(factors[case])
    largest = max(controls.values(), key=lambda one: one.cases, default=Control())
    used = [one for one in controls.values() if one.used]
    count = sum(one.cases for one in used)
    widening = sum(one.widening * one.cases for one in used) / count if used else 1.0
    together = replace(largest, cases=count, widening=widening) if used else largest
    return together, widening, shifts, Crossings(boards, factors)


def _factor(case: str, boards: BoardsOfPair, known: tuple[KnownBoards | None, Mapping[str, str]]) -> BoardFactor:
    history, metrics = known
    return history.factor(metrics[case], case, *boards) if history else BoardFactor(reason=UNLEARNED)


def _shift(factor: BoardFactor) -> MachineShift:
    """Return the factor with its error, and with what a run on either board differs from another one."""
    return MachineShift(factor.log, hypot(factor.sure_error, sqrt(2) * factor.between_runs))
