"""Parts of a KernelSpec: its definition, what it is checked against, its configuration, its performance, its place.

KernelSpec inherits the fields of all of them, so that a spec is written as one flat list of keywords.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prism_bench.spec.arguments import Array, FilledArray, Scalar
from prism_bench.spec.budget import Budget
from prism_bench.spec.called import KernelCall
from prism_bench.spec.card import LaunchCard
from prism_bench.spec.launch import Launch, Requirement, Zero
from prism_bench.spec.peer import Peer, as_peer
from prism_bench.spec.rule import Rule
from prism_bench.spec.tolerance import Tolerance, elementwise
from prism_bench.spec.tune import Tune
from prism_bench.spec.variant import Chain, Variant
from prism_bench.spec.workload import Edge, Workload

CUDA = "cuda"  # the language of a `.cu` file; the others are named by the suffix of a kernel's file
ArithmeticPrecision = Literal["fp8", "half", "tf32", "fp32", "fp64"]  # the lowest first
HostSteps = Launch | Zero | tuple[Launch | Zero, ...] | list[Launch | Zero]


@dataclass(frozen=True)
class Golden:
    """Inputs and outputs known beforehand: `inputs` and `expected` are arrays by name, or functions of the axes.

    `source` names who vouches for the numbers. Verified on every backend; never used for timing.
    """

    workload: Workload
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    source: str
    tolerance: Tolerance | Mapping[str, Tolerance] | None = None


def no_launch() -> HostSteps:
    """Return no step: what a callable launches is its own."""
    return ()


@dataclass(frozen=True, kw_only=True)
class SpecDefinition:
    """Definition of a kernel: its entry, its arguments, its launches, its float64 reference and its workloads.

    A `callable` does the work in the place of entry and launches.
    """

    arguments: tuple[Array | Scalar, ...]
    reference: Callable[..., Any]
    workloads: Mapping[str, Workload]
    entry: str = ""
    launch: Callable[..., HostSteps] = no_launch
    callable: KernelCall | Callable[..., Any] | None = None

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Arguments that are buffers."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Array))

    @property
    def inputs(self) -> tuple[FilledArray, ...]:
        """Buffers that the kernel reads."""
        return tuple(argument for argument in self.arguments if isinstance(argument, FilledArray))

    @property
    def outputs(self) -> tuple[Array, ...]:
        """Buffers that the kernel writes, without scratch."""
        return tuple(array for array in self.arrays if array.writes)


@dataclass(frozen=True, kw_only=True)
class SpecChecks:
    """What the outputs of a kernel are checked against, beyond its workloads."""

    edges: tuple[Workload | Edge, ...] = ()
    golden: tuple[Golden, ...] = ()
    tolerance: Tolerance | Mapping[str, Tolerance] = field(default_factory=elementwise)
    peers: Mapping[str, Peer | Callable[..., Any]] = field(default_factory=dict[str, Peer | Callable[..., Any]])
    peer_tolerance: Tolerance | None = None
    least_precision: ArithmeticPrecision | None = None
    looked_at: Mapping[str, str] = field(default_factory=dict[str, str])

    def peer(self, name: str) -> Peer:
        """Return the peer called `name`."""
        return as_peer(self.peers[name])


@dataclass(frozen=True, kw_only=True)
class SpecConfiguration:
    """What a kernel's cases have in addition to their workload: parameters, derived sizes, rules, what may vary."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    derived: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    rules: tuple[Rule, ...] = ()
    options: tuple[str, ...] = ()
    compiler: str = "nvrtc"
    compile_commands: Path | str | None = None
    requires: Requirement | Callable[..., Requirement | None] | None = None
    tune: Tune | None = None
    only_labels: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class SpecPerformance:
    """What a kernel's times are compared with: its compulsory bytes, its operations, its ceiling and its budgets."""

    flops: Callable[..., float] | None = None
    bytes_moved: Callable[..., float] | None = None
    traffic_factor: float | None = 4.0
    budgets: tuple[Budget, ...] = ()
    ceiling: str | None = None
    arithmetic: str = "fp32"


@dataclass(frozen=True, kw_only=True)
class SpecPlace:
    """Place of a kernel in its catalogue: variants, aliases, stages of fusion, and where it was found.

    `source` is a file anywhere; as text it is relative to the spec's folder. The catalogue fills in its path, and
    `file`, the spec's own.
    """

    variants: Mapping[str, Variant] = field(default_factory=dict[str, Variant])
    aliases: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    chains: tuple[Chain, ...] = ()
    before: str | None = None
    name: str = ""
    family: str = ""
    source: Path | str | None = None
    file: Path | None = None
    language: str = CUDA
    cards: tuple[LaunchCard, ...] = ()
