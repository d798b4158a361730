"""The document of a replay: the claim, the answer, both ratios, and everything that was looked at."""

from typing import Literal

import msgspec

from prism_bench.extensions.claims.answers import EXIT_CODES, ReplayAnswer
from prism_bench.extensions.claims.document import ClaimRatio

FORMAT, SCHEMA = "prism-bench replay", 1
CheckResult = Literal["same", "right", "other", "wrong", "open"]


class ReplayCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that was looked at, what came of it, and in words."""

    what: str
    result: CheckResult
    words: str = ""


class Replay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A replay of the claim with this digest and sentence.

    `expected` is the claimed ratio, with the wider interval that another kind of device has; `here` the one that was
    measured, None where nothing was. `board` is the UUID of the GPU that measured, empty where that is unknown.
    """

    format: str
    schema: int
    claim: str
    sentence: str
    answer: ReplayAnswer
    expected: ClaimRatio
    here: ClaimRatio | None
    backend: str
    device: str
    created: str
    software: dict[str, str]
    checks: tuple[ReplayCheck, ...]
    board: str = ""

    @property
    def exit_code(self) -> int:
        """What the command ends with: 0 reproduced, 1 not or partly, 3 where it cannot be decided here."""
        return EXIT_CODES[self.answer.word]
