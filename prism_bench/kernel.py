"""KernelSpec: what one kernel computes and how it is launched."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from pathlib import Path

from prism_bench import byname
from prism_bench.arguments import Array, In, InOut, Out, Scalar, Scratch, Size
from prism_bench.budget import Budget
from prism_bench.errors import SpecError, unknown
from prism_bench.tolerance import Tolerance, elementwise
from prism_bench.tune import Tune
from prism_bench.workload import Edge, Workload

__all__ = [
    "Array", "Chain", "Edge", "Golden", "In", "InOut", "KernelSpec", "Launch", "Out", "Requirement", "Rule", "Scalar",
    "Scratch", "Size", "Tune", "Variant", "Zero",
]  # fmt: skip


@dataclass(frozen=True)
class Launch:
    """One launch. `entry` and `arguments` (names) default to the spec's; a zero in `grid` means nothing to launch."""

    grid: int | tuple
    block: int | tuple
    shared: int = 0
    entry: str | None = None
    arguments: tuple[str, ...] | None = None
    cooperative: bool = False

    def __post_init__(self) -> None:
        _require_extent("grid", self.grid, least=0)
        _require_extent("block", self.block, least=1)

    @property
    def is_empty(self) -> bool:
        """Whether the grid has no block."""
        return 0 in (self.grid if isinstance(self.grid, tuple) else (self.grid,))


def _require_extent(what: str, value: object, *, least: int) -> None:
    """Raise a SpecError unless `value` is a whole number, or a tuple of one to three, each of at least `least`."""
    extents = value if isinstance(value, tuple) else (value,)
    whole = all(isinstance(extent, Integral) and not isinstance(extent, bool) for extent in extents)
    if not (whole and 1 <= len(extents) <= 3 and min(extents) >= least):
        raise SpecError(
            f"Launch: {what} is {value!r}; it is a whole number of at least {least}, or a tuple of one to three"
        )


@dataclass(frozen=True)
class Zero:
    """A step of a host plan: fill the named buffer with zero bytes, asynchronously."""

    name: str


@dataclass(frozen=True)
class Rule:
    """What a workload must keep: `text` says it in words, `holds` asks for axes by name."""

    text: str
    holds: Callable


@dataclass(frozen=True)
class Requirement:
    """Instructions (`what`, in words) that one compute capability alone has, such as 90."""

    what: str
    compute_capability: int


@dataclass(frozen=True)
class Golden:
    """Inputs and outputs known beforehand: `inputs` and `expected` are arrays by name, or functions of the axes.

    `source` says who vouches for the numbers. Verified on every backend; never used for timing.
    """

    workload: Workload
    inputs: Mapping[str, object]
    expected: Mapping[str, object]
    source: str
    tolerance: Tolerance | None = None


@dataclass(frozen=True)
class Variant:
    """Another implementation of the same spec: the fields of KernelSpec that differ, by name."""

    meaning: str
    changes: Mapping[str, object]

    def __init__(self, meaning: str, **changes):
        object.__setattr__(self, "meaning", meaning)
        object.__setattr__(self, "changes", changes)


STAGES = ("baseline", "partial", "full", "persistent")


@dataclass(frozen=True)
class Chain:
    """Stages of fusion: for each of `STAGES` that there is the variant that does it, None for the kernel itself.

    `between` names the scratch arrays that launches hand on to later ones, which fusion does away with; all other
    scratch is a launch's own workspace.
    """

    name: str
    stages: Mapping[str, str | None]
    between: tuple[str, ...] = ()

    def complaint(self, spec: "KernelSpec") -> str | None:
        """What in the chain contradicts the spec, or None."""
        given = [*spec.arguments, *(a for one in spec.variants.values() for a in one.changes.get("arguments", ()))]
        scratch = {array.name for array in given if isinstance(array, Scratch)}
        odd = {
            "stage": [one for one in self.stages if one not in STAGES],
            "variant": [one for one in self.stages.values() if one is not None and one not in spec.variants],
            "scratch array": [name for name in self.between if name not in scratch],
        }
        wrong = [f"there is no {kind} {', '.join(names)}" for kind, names in odd.items() if names]
        missing = [] if "baseline" in self.stages else ["it has no baseline"]
        return f"chain '{self.name}': {'; '.join(wrong + missing)}" if wrong or missing else None


@dataclass(frozen=True)
class KernelSpec:
    """What a kernel computes (`reference`, in float64), how it is launched, and what it is held to.

    `launch` returns one Launch or a sequence of Launch and Zero steps; it may ask for axes, parameters, derived sizes
    and `device` (with `sm_count`, `max_shared_bytes`, `compute_capability`). `reference` and `tolerance` functions may
    ask for inputs by name (floats as float64), axes, `xp` (NumPy or CuPy) and `special` (scipy.special or CuPy's);
    `reference` returns the output, or a tuple in the order of the outputs. `peers` ask for `torch`, `cupy` or `numpy`
    and for inputs by name as arrays of that library, and return what `reference` returns.
    `arithmetic` names the ceiling that bounds the operations: `fp32`, `tensor` or `fp64`.
    `traffic_factor` is how many times its compulsory bytes the source may ask of memory (caches serve the rest).
    `chains` are the stages of fusion among the kernel and its variants, told apart where they differ in precision.
    `requires` is for a variant that only one compute capability can run, or a function of axes for cases of which some
    are so; elsewhere those are skipped.
    `tune` is what may vary in the launch; functions may ask for its names as for axes, and a parameter or workload of
    the same name pins it.
    `name`, `family` and `source` are filled in by the catalogue, `variant_of` by `with_variant`.
    """

    entry: str
    arguments: tuple
    launch: Callable
    reference: Callable
    workloads: Mapping[str, Workload]
    edges: tuple[Workload | Edge, ...] = ()
    golden: tuple[Golden, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    derived: Mapping[str, Callable] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    tolerance: Tolerance | Mapping[str, Tolerance] = field(default_factory=elementwise)
    peers: Mapping[str, Callable] = field(default_factory=dict)
    peer_tolerance: Tolerance | None = None
    flops: Callable | None = None
    bytes_moved: Callable | None = None
    traffic_factor: float | None = 4.0
    budgets: tuple[Budget, ...] = ()
    variants: Mapping[str, Variant] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    chains: tuple[Chain, ...] = ()
    ceiling: str | None = None
    arithmetic: str = "fp32"
    options: tuple[str, ...] = ()
    only_labels: tuple[str, ...] | None = None
    requires: Requirement | Callable | None = None
    tune: Tune | None = None
    name: str = ""
    family: str = ""
    source: Path | None = None
    variant_of: "KernelSpec | None" = field(default=None, repr=False, compare=False)

    def __post_init__(self):
        names = [argument.name for argument in self.arguments]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise SpecError(f"{self.label_in_errors}: two arguments named {', '.join(doubled)}")
        odd = sorted(set(self.workloads) - {"S0", "S1", "S2"})
        if odd:
            raise SpecError(f"{self.label_in_errors}: workload label {', '.join(odd)}; labels are S0, S1, S2")
        missing = sorted(set(self.only_labels or ()) - set(self.workloads))
        if missing:
            raise SpecError(f"{self.label_in_errors}: only_labels names {', '.join(missing)}, which has no workload")

        complaint = next(filter(None, (chain.complaint(self) for chain in self.chains)), None)
        if complaint:
            raise SpecError(f"{self.label_in_errors}: {complaint}")

    @property
    def source_file(self) -> Path:
        """The CUDA source; a SpecError where the spec was not loaded from a catalogue."""
        if self.source is None:
            raise SpecError(f"{self.name or 'a spec'} has no source: load it from a catalogue")
        return self.source

    @property
    def label_in_errors(self) -> str:
        return self.name or f"spec of '{self.entry}'"

    @property
    def arrays(self) -> tuple[Array, ...]:
        return tuple(argument for argument in self.arguments if isinstance(argument, Array))

    @property
    def inputs(self) -> tuple[Array, ...]:
        return tuple(array for array in self.arrays if array.reads)

    @property
    def outputs(self) -> tuple[Array, ...]:
        return tuple(array for array in self.arrays if array.writes)

    @property
    def tunable(self) -> tuple[str, ...]:
        """The names of `tune` that the launch or a derived size asks for: what varies here, in a variant too."""
        asked = {name for function in (self.launch, *self.derived.values()) for name in byname.wanted(function)}
        return tuple(name for name in self.tune.values if name in asked) if self.tune else ()

    def argument(self, name: str):
        """The argument called `name`."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise SpecError(f"{self.label_in_errors}: no argument is called '{name}'")

    def array(self, name: str) -> Array:
        """Return the buffer called `name`."""
        found = self.argument(name)
        if not isinstance(found, Array):
            raise SpecError(f"{self.label_in_errors}: argument '{name}' is no array")
        return found

    def tolerance_of(self, output: str) -> Tolerance:
        """The tolerance for one output."""
        if isinstance(self.tolerance, Tolerance):
            return self.tolerance
        if output not in self.tolerance:
            raise SpecError(f"{self.label_in_errors}: no tolerance for output '{output}'")
        return self.tolerance[output]

    def with_variant(self, name: str) -> "KernelSpec":
        """The spec of the variant `name`: the same kernel with that variant's changes and no variants of its own."""
        if name not in self.variants:
            raise unknown(f"variant of {self.name}", name, self.variants)
        changes = dict(self.variants[name].changes)
        known = {f.name for f in fields(self)}
        odd = sorted(set(changes) - known)
        if odd:
            raise SpecError(f"{self.name}: variant '{name}' changes {', '.join(odd)}, which no spec has")
        inherited = {"variants": {}, "aliases": (), "peers": {}, "chains": (), "variant_of": self}
        return replace(self, **inherited | changes)
