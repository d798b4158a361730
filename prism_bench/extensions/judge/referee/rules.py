"""How a referee judges a case: how many launches, how long, and which of their outputs are compared in whole."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RefereeRules:
    """How many blocks of samples are taken, each with its module, samples of a block, launches before them.

    An untimed case has one block of `checks` launches. A launch may take `launch_seconds`, those of a case together
    `case_seconds`: beyond them it has no time. Outputs of a block's first launch are compared with the reference in
    whole, of the others a share `whole`, drawn after each launch, and all where they have at most `small_bytes`; the
    rest by their digest. Two clocks that disagree are compared `clock_tries` times, after pauses that grow by
    `clock_pause` seconds. Without `repeats` no other process repeats the launches: code that is trusted does the same
    in each.
    """

    blocks: int = 3
    samples: int = 10
    warmups: int = 2
    checks: int = 2
    launch_seconds: float = 30.0
    case_seconds: float = 300.0
    whole: float = 0.2
    small_bytes: int = 1 << 20
    clock_tries: int = 5
    clock_pause: float = 0.2
    repeats: bool = True
