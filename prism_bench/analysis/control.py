"""The control of a comparison: cases of identical code, whose times show what the machine did between the sides."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.special import bdtrc, stdtrit

from prism_bench.analysis.findings import Finding
from prism_bench.analysis.verdict import CHANGED, Judgement

ENOUGH = 8  # fewer say nothing of how far the others may be off
BY_CHANCE = 0.01


@dataclass(frozen=True)
class Control:
    """The cases of identical code: how many, how many of them the times alone call changed, how likely at least so many
    are by chance, the median ratio of B to A, and the factor by which all errors were widened for it.
    """

    cases: int = 0
    changed: tuple[str, ...] = ()
    chance: float = 1.0
    shift: float = 1.0
    widening: float = 1.0

    @property
    def excess(self) -> bool:
        """Whether more came out changed than chance explains."""
        return self.chance < BY_CHANCE


def control_of(judgements: Mapping[str, Judgement]) -> Control:
    """The control that the judgements of cases of identical code make, each by its times alone."""
    if not judgements:
        return Control()
    changed = tuple(case for case, one in judgements.items() if one.verdict in CHANGED)
    chance = float(bdtrc(len(changed) - 1, len(judgements), BY_CHANCE)) if changed else 1.0
    shift = median(one.estimate.ratio for one in judgements.values())
    return Control(len(judgements), changed, chance, shift, _widening(list(judgements.values())))


def _widening(judgements):
    """How much larger the controls' differences are than their errors say, by the median of what should be t."""
    known = [one.estimate for one in judgements if one.estimate.freedom and one.estimate.error > 0]
    if len(known) < ENOUGH:
        return 1.0
    sizes = [abs(one.log) / one.error / stdtrit(one.freedom, 0.75) for one in known]
    return max(1.0, float(np.median(sizes)))


def failed_control(control: Control) -> Finding:
    """What a control with an excess has to say."""
    message = (
        f"{len(control.changed)} of {control.cases} cases of identical machine code have times that differ beyond "
        f"chance (median ratio {control.shift:.3f}): the machine changed between the sides"
    )
    return Finding("untrusted", "control", None, message)
