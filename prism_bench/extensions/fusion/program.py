"""A program: inputs, stages and outputs named once, and all that the spec of its kernel needs besides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.expression import Shared
from prism_bench.kernel import Golden
from prism_bench.workload import Workload

NUMBERS = ("float32", "float64")
SAMPLES = Shared("neighbours", "SAMPLES")


@dataclass(frozen=True)
class Input:
    """An array read by the stages; `shape` names one axis or two, `fill` how it is drawn (normal where it is None)."""

    name: str
    shape: str
    fill: Shared | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(self.shape.split())


@dataclass(frozen=True)
class ByHand:
    """The form written by hand, a variant of the kernel: `entry` of `<name>.cu` in the family's folder.

    {} in the entry stands for what varies: the number's type, or tile and template arguments. `tensor` is the entry for
    tensor cores; `arguments` are the names to pass where they are not the generated kernel's.
    """

    entry: str
    arguments: tuple[str, ...] | None = None
    tensor: str | None = None


@dataclass(frozen=True)
class Form:
    """Other stages for the same inputs and outputs: a variant of the kernel, timed at the documents' size."""

    meaning: str
    stages: tuple


@dataclass(frozen=True)
class Program:
    """What one fused kernel computes. Stages name inputs, scalars and each other, in any order; `outputs` name stages.

    `scalars` are parameters with their defaults. `numbers` are the types that it comes in: float32 and float64.
    `peers` are functions of a line or more, defined where the program is: the spec gets their text.
    Those in `compiled` are timed as torch.compile makes them too. `within` is how far an output may be from float64 on
    unrounded inputs, normwise: `prism-bench precision` chooses by it.
    """

    summary: str
    inputs: tuple[Input, ...]
    stages: tuple
    outputs: tuple[str, ...]
    workloads: Mapping[str, Workload]
    edges: tuple[Workload, ...]
    scalars: Mapping[str, float] = field(default_factory=dict)
    numbers: tuple[str, ...] = ("float32",)
    golden: tuple[Golden, ...] = ()
    peers: Mapping[str, Callable] = field(default_factory=dict)
    compiled: tuple[str, ...] = ()
    forms: Mapping[str, Form] = field(default_factory=dict)
    within: float | None = None
    by_hand: ByHand | None = None
    aliases: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()

    def __post_init__(self):
        for one in self.numbers:
            if one not in NUMBERS:
                raise SpecError(f"unknown precision '{one}' of the program; known: {', '.join(NUMBERS)}")
        if self.within is not None and not self.within > 0:
            raise SpecError(f"within is {self.within}: an error greater than 0, such as 1e-3")
        for one in self.inputs:
            if not 1 <= len(one.axes) <= 2:
                raise SpecError(f"input '{one.name}' has shape '{one.shape}': one axis or two")
        object.__setattr__(self, "inputs", tuple(map(self._filled, self.inputs)))

    def _filled(self, given: Input) -> Input:
        """The input as it is drawn: what stages take distances of is finite."""
        of_points = any(given.name in getattr(stage, "points", ()) for stage in self.stages)
        return replace(given, fill=SAMPLES) if of_points and not given.fill else given
