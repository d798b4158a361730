"""Cases that the emulator does not run: why, and whether a GPU has shown what it could not."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from prism_bench.extensions.judge.referee.session import WHERE, WHERE_UNTIMED
from prism_bench.extensions.judge.verdict import CheckedCase
from prism_bench.spec.case import Case
from prism_bench.units import count_text

NAMED = 3  # cases of a reason that are named, not counted


@dataclass
class SkippedCases:
    """The cases by name, each with the reason of the first pass that skipped it."""

    cases: dict[str, Case] = field(default_factory=dict[str, Case])
    reasons: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, case: Case, reason: str) -> None:
        """Note that a pass did not run a case."""
        self.cases.setdefault(case.name, case)
        self.reasons.setdefault(case.name, reason)

    def words(self, unseen: Sequence[str]) -> list[str]:
        """Return a line for each reason, with its cases, and one for those that ran nowhere."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.reasons.items():
            by_reason.setdefault(reason, []).append(name)
        lines = [f"{_listed(names)}: not judged on the emulator: {why}" for why, names in by_reason.items()]
        return [*lines, *([f"{_listed(unseen)}: not judged anywhere: no GPU launched it either"] if unseen else ())]

    def besides(self, launched: Sequence[Case]) -> list[Case]:
        """Return those that a GPU does not launch anyway."""
        known = {case.name for case in launched}
        return [case for name, case in self.cases.items() if name not in known]

    def unseen(self, checked: Sequence[CheckedCase], struck: Collection[str]) -> list[str]:
        """Return those that no GPU has shown to be right either; what counts for nothing is none of them."""
        shown = {one.case for one in checked if one.right and one.where in (WHERE, WHERE_UNTIMED)}
        return [name for name in self.cases if name not in shown and name not in struck]


def _listed(names: Sequence[str]) -> str:
    more = f" and {count_text(len(names) - NAMED, 'other case')}" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
