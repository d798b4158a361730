"""A case as a referee takes it, and what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from prism_bench.extensions.judge.referee.messages import CasePlan
from prism_bench.measure.plausibility import LaunchWork
from prism_bench.spec.inputs import AnyArray, ArrayModule, InputArray


@dataclass(frozen=True)
class RefereedCase:
    """What is launched of the `cubins`, and how outputs are judged.

    `complaint` compares those on inputs of a seed, in words.
    Of a case that is not `timed` every output is compared in whole. `arrays` is the module whose arrays are compared.
    """

    plan: CasePlan
    inputs: Callable[[int], Mapping[str, InputArray]]
    complaint: Callable[[int, Mapping[str, InputArray], Mapping[str, AnyArray]], str]
    work: LaunchWork = LaunchWork()
    cubins: tuple[bytes, ...] = ()
    timed: bool = True
    arrays: Callable[[], ArrayModule] = lambda: np


@dataclass
class RefereedTimes:
    """What came of a case: the seconds of the samples, the seeds of their inputs, and complaints: a rule and words.

    `compared` has the digests of outputs that were right in whole, by the seed of their inputs.
    """

    seconds: list[float] = field(default_factory=list[float])
    seeds: list[int] = field(default_factory=list[int])
    complaints: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    repeatable: bool = True
    compared: dict[int, Mapping[str, int]] = field(default_factory=dict[int, Mapping[str, int]])
    variables: dict[str, int] = field(default_factory=dict[str, int])
