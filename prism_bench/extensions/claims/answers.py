"""What a replay answers: a claimed ratio next to the one measured here, each with its interval."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from prism_bench.extensions.claims.derived import interval_text, six
from prism_bench.extensions.claims.document import ClaimRatio
from prism_bench.units import count_text

AnswerWord = Literal["reproduced", "not reproduced", "partly reproduced", "cannot be decided here"]
EXIT_CODES: dict[AnswerWord, int] = {
    "reproduced": 0, "not reproduced": 1, "partly reproduced": 1, "cannot be decided here": 3,
}  # fmt: skip
_WIDEST = 4.0  # times the lower end of a measured interval: a wider one meets about any claim


class ReplayAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer and why."""

    word: AnswerWord
    because: str


def answer(claimed: ClaimRatio, here: ClaimRatio | None, expected: ClaimRatio | None = None) -> ReplayAnswer:
    """Compare the intervals: one that meets the other reproduces it, one on the same side of 1 does so partly.

    On another kind of device `expected` is to be met. It may be so wide that it holds both sides of 1, where a ratio on
    another side than the claimed one neither reproduces the claim nor refutes it.
    """
    if here is None:
        return ReplayAnswer("cannot be decided here", "nothing was measured")
    if claimed.low is None or claimed.high is None:
        return ReplayAnswer("cannot be decided here", "the claim has no interval to compare with")
    if here.low is None or here.high is None:
        return ReplayAnswer("cannot be decided here", "too few processes were measured here for an interval")
    there, measured = f"{interval_text(claimed)} is claimed", f"{interval_text(here)} was measured"
    both = f"{there}, {f'{interval_text(expected)} expected here, ' if expected else ''}{measured}"
    if meet(expected or claimed, here):
        if here.high > _WIDEST * here.low:
            return ReplayAnswer("cannot be decided here", f"{both}, which is too wide to decide it")
        if _side(claimed) and not _side(here):
            return ReplayAnswer("cannot be decided here", f"{both}, which also holds no difference at all")
        if expected and _side(claimed) != _side(here):
            return ReplayAnswer("cannot be decided here", f"{both}, on another side of 1 than the claim")
        return ReplayAnswer("reproduced", f"the intervals meet: {both}")
    if _side(claimed) and _side(claimed) == _side(here):
        return ReplayAnswer("partly reproduced", f"the side is right and the size is another: {both}")
    return ReplayAnswer("not reproduced", both)


def meet(one: ClaimRatio, other: ClaimRatio) -> bool:
    """Return whether the two intervals have a value in common; False where one of them is unknown."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low <= other.high and other.low <= one.high


def _side(ratio: ClaimRatio) -> int:
    """Return 1 where the whole interval is above 1, -1 where it is below, 0 where it holds 1."""
    assert ratio.low is not None and ratio.high is not None
    return 1 if ratio.low > 1 else -1 if ratio.high < 1 else 0


def scaled(claimed: ClaimRatio, there: Mapping[str, float], here: Mapping[str, float]) -> tuple[ClaimRatio, str] | None:
    """Return what to expect on a device with other ceilings, and in words why; None where no ceilings are shared.

    A time scales by the ceiling that bounds it, and which ceiling bounds which side is unknown. So the interval is
    widened by the ratio between the largest and the smallest factor among the ceilings that both devices measured.
    """
    shared = sorted(set(there) & set(here))
    rates = [name for name in shared if name != "launch"]
    if not rates or claimed.low is None or claimed.high is None:
        return None
    factors = {name: there[name] / here[name] for name in rates}
    if "launch" in shared:
        factors["launch"] = here["launch"] / there["launch"]
    width = max(factors.values()) / min(factors.values())
    words = (
        f"scaled by {count_text(len(factors), 'ceiling')}: times here are "
        f"{min(factors.values()):.2f} to {max(factors.values()):.2f} "
        f"of those there, so the interval is {width:.2f} times as wide on either side"
    )
    return msgspec.structs.replace(claimed, low=six(claimed.low / width), high=six(claimed.high * width)), words
