"""A program: inputs, stages and outputs named once, and all else that the spec of its kernel needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from prism_bench.errors import SpecError
from prism_bench.extensions.fusion.expression import SharedName
from prism_bench.extensions.fusion.stages import Nearest, Stage, Within
from prism_bench.spec.inputs import Fill
from prism_bench.spec.kernel import Golden
from prism_bench.spec.peer import Peer
from prism_bench.spec.workload import Workload

NUMBERS = ("float32", "float64")
SAMPLES = SharedName("neighbours.neighbours", "SAMPLES")


@dataclass(frozen=True)
class Input:
    """An array read by the stages; `shape` names one axis or two, `fill` how it is drawn (normal where it is None)."""

    name: str
    shape: str
    fill: Fill | SharedName | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(self.shape.split())


@dataclass(frozen=True)
class ByHand:
    """The hand-written form, a variant of the kernel: `entry` of `<name>.cu` in the family's folder.

    {} in the entry is a place for what varies: the number's type, or tile and template arguments. `tensor` is the entry
    for tensor cores; `arguments` are the names to pass where they are not the generated kernel's.
    """

    entry: str
    arguments: tuple[str, ...] | None = None
    tensor: str | None = None


@dataclass(frozen=True)
class ProgramForm:
    """Other stages for the same inputs and outputs: a variant of the kernel, timed at the documents' size."""

    meaning: str
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class FusionProgram:
    """What one fused kernel computes. Stages name inputs, scalars and each other, in any order; `outputs` name stages.

    `scalars` are parameters with their defaults. `numbers` are the types that it comes in: float32 and float64.
    `peers` are the library calls to time.
    `within` is how far an output may be from float64 on unrounded inputs, normwise: `prism-bench precision` chooses by
    it.
    """

    inputs: tuple[Input, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
    workloads: Mapping[str, Workload]
    edges: tuple[Workload, ...]
    scalars: Mapping[str, float] = field(default_factory=dict)
    numbers: tuple[str, ...] = ("float32",)
    golden: tuple[Golden, ...] = ()
    peers: Mapping[str, Peer | Callable[..., Any]] = field(default_factory=dict)
    forms: Mapping[str, ProgramForm] = field(default_factory=dict)
    within: float | None = None
    by_hand: ByHand | None = None
    aliases: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()

    def __post_init__(self) -> None:
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
        """Return the input with its fill: inputs that stages take distances of are finite."""
        scans = [stage for stage in self.stages if isinstance(stage, Nearest | Within)]
        of_points = any(given.name in stage.points for stage in scans)
        return replace(given, fill=SAMPLES) if of_points and not given.fill else given
