"""KernelSpec: what one kernel computes, how it is launched, and what it is checked against.

A spec imports everything that it is written with from here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from prism_bench.errors import SpecError, unknown
from prism_bench.spec import arguments as byname
from prism_bench.spec.arguments import Array, Constant, FilledArray, In, InOut, Out, Scalar, Scratch, Size, Struct
from prism_bench.spec.kinds import Noun, require_kinds
from prism_bench.spec.launch import MAP_TYPE, POINTER_BYTES, Launch, LaunchCard, Requirement, TensorMap, Zero
from prism_bench.spec.metric import Budget
from prism_bench.spec.peer import KernelCall, Peer, as_peer
from prism_bench.spec.tolerance import Tolerance, elementwise
from prism_bench.spec.workload import LABELS, STAGES, Chain, Edge, Rule, Tune, Variant, Workload
from prism_bench.units import count_text

__all__ = [
    "STAGES", "Array", "Chain", "Constant", "Edge", "Golden", "In", "InOut", "KernelSpec", "Launch", "Out", "Peer",
    "Requirement", "Rule", "Scalar", "Scratch", "Size", "Struct", "TensorMap", "Tune", "Variant", "Zero",
]  # fmt: skip

CUDA = "cuda"  # the language of a `.cu` file; the others are named by the suffix of a kernel's file
ArithmeticPrecision = Literal["fp8", "half", "tf32", "fp32", "fp64"]  # the lowest first
HostSteps = Launch | Zero | tuple[Launch | Zero, ...] | list[Launch | Zero]


@dataclass(frozen=True)
class Golden(Noun):
    """Inputs and outputs known beforehand: `inputs` and `expected` are arrays by name, or functions of the axes.

    `source` names who vouches for the numbers. Verified on every backend; never used for timing.
    """

    workload: Workload
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    source: str
    tolerance: Tolerance | Mapping[str, Tolerance] | None = None


# What to write into fields of a KernelSpec.
_ADVICE: Mapping[str, str] = {
    "arguments": 'write a tuple of arguments: (In("x", "n"), Out("y", "n"), Size("n"))',
    "edges": "write a tuple of Workload and Edge: (Workload(n=1),)",
    "golden": "write a tuple of Golden: (Golden(...),)",
    "rules": "write a tuple of Rule: (Rule(...),)",
    "options": 'write a tuple of texts: ("--use_fast_math",)',
    "budgets": "write a tuple of Budget: (Budget(...),)",
    "aliases": 'write a tuple of names: ("add",)',
    "replaces": 'write a tuple of names: ("add",)',
    "chains": "write a tuple of Chain: (Chain(...),)",
    "workloads": 'write a dict of Workload by label: {"S0": Workload(n=1000)}',
    "variants": 'write a dict of Variant by name: {"naive": Variant(...)}',
    "derived": 'write a dict of functions by name: {"blocks": lambda n: n // 32}',
    "parameters": 'write a dict of values by name: {"alpha": 2.0}',
    "peers": 'write a dict of functions or Peer by library: {"torch": lambda torch, x: ...}',
    "looked_at": 'write a dict of texts by library: {"torch": "it has no such function"}',
    "entry": 'write the name of a function of the source: "add"',
    "reference": "write a function, or the name of one",
    "launch": "write a function of axes: lambda n: Launch(grid=n, block=128)",
    "callable": "write a function or a KernelCall",
    "peer_tolerance": "write a Tolerance: elementwise()",
    "compile_commands": 'write a path: "build/compile_commands.json"',
    "source": 'write a path: "add.cu"',
    "tune": "write Tune(...): Tune(block=(64, 128))",
    "requires": "write a Requirement, or a function of axes",
    "only_labels": 'write a tuple of labels: ("S0",)',
    "flops": "write a function of axes: lambda n: 2 * n",
    "bytes_moved": "write a function of axes: lambda n: 8 * n",
    "traffic_factor": "write a number: 4.0",
    "ceiling": 'write what it measures: "bandwidth"',
    "arithmetic": 'write the name of a ceiling: "fp32"',
    "before": 'write the name of a kernel: "add"',
    "batch_invariant": "it is a tuple of axes: ('rows',)",
}


def no_launch() -> HostSteps:
    """Return no step: what a callable launches is its own."""
    return ()


@dataclass(frozen=True, kw_only=True, repr=False)
class KernelSpec:
    """What a kernel computes (`reference`, in float64), how it is launched, and what it is checked against.

    `launch` returns one Launch or a sequence of Launch and Zero steps; it may ask for axes, parameters, derived sizes
    and `device` (with `sm_count`, `max_shared_bytes`, `compute_capability`). A `callable` does the work in the place of
    entry and launches. `reference` and `tolerance` functions may ask for inputs by name (floats as float64), axes, `xp`
    (NumPy or CuPy) and `special` (scipy.special or CuPy's); `reference` returns the output, or a tuple in the order of
    the outputs. As a text it is a function of the user's repository, `"module:function"` or
    `"module:function(x, eps=eps)"`, on NumPy arrays or torch tensors in float64; it runs in a child process.
    `peers` are calls of a library of `peer.LIBRARIES`, plain functions or `Peer` objects: see `peer.Peer`. `looked_at`
    gives for other libraries why they are no peers: what they offer instead.
    `arithmetic` names the ceiling of the operations: `fp32`, `fp64`, `tensor` (half or bfloat16 on tensor cores),
    `tf32`, `float8`, or `three_tf32` and `three_bfloat16` (FP32 as three and six such products).
    `least_precision` is for `prism-bench judge`: arithmetic below it, such as `tf32` below `fp32`, is refused.
    `bitwise` promises the same bits on every launch, whatever its order of blocks, configuration, load or board;
    `batch_invariant` names axes of the workloads along which an index keeps its bits, whatever the others hold and
    however many there are. `prism-bench verify` holds the first promise, `verify --bitwise` both.
    `traffic_factor` is how many times its compulsory bytes the source may ask of memory (caches serve the rest).
    `chains` are the stages of fusion among the kernel and its variants, distinguished where they differ in precision.
    `before` is for a form that is kept to compare with: the name of the kernel or `kernel:variant` that replaces it. It
    enters no mean over kernels, and no count of those that are slower than a peer. Variants do not inherit it.
    `requires` is for a variant that only one compute capability can run, or a function of axes if some cases are so;
    on other devices those are skipped.
    `tune` is what may vary in the launch; functions may ask for its names as for axes, and a parameter or workload of
    the same name pins it.
    `source` is a file anywhere; as text it is relative to the spec's folder. The catalogue fills in its path, the
    spec's own `file`, `name` and `family`; `with_variant` fills in `variant_of`.
    """

    # The definition.
    arguments: tuple[Array | Scalar, ...]
    reference: Callable[..., Any] | str
    workloads: Mapping[str, Workload]
    entry: str = ""
    launch: Callable[..., HostSteps] = no_launch
    callable: KernelCall | Callable[..., Any] | None = None
    # What outputs are checked against, beyond the workloads.
    edges: tuple[Workload | Edge, ...] = ()
    golden: tuple[Golden, ...] = ()
    tolerance: Tolerance | Mapping[str, Tolerance] = field(default_factory=elementwise)
    peers: Mapping[str, Peer | Callable[..., Any]] = field(default_factory=dict[str, Peer | Callable[..., Any]])
    peer_tolerance: Tolerance | None = None
    least_precision: ArithmeticPrecision | None = None
    looked_at: Mapping[str, str] = field(default_factory=dict[str, str])
    bitwise: bool = False
    batch_invariant: tuple[str, ...] = ()
    # What cases have in addition to their workload, and what may vary.
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    derived: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    rules: tuple[Rule, ...] = ()
    options: tuple[str, ...] = ()
    compiler: str = "nvrtc"
    compile_commands: Path | str | None = None
    requires: Requirement | Callable[..., Requirement | None] | None = None
    tune: Tune | None = None
    only_labels: tuple[str, ...] | None = None
    # What times are compared with.
    flops: Callable[..., float] | None = None
    bytes_moved: Callable[..., float] | None = None
    traffic_factor: float | None = 4.0
    budgets: tuple[Budget, ...] = ()
    ceiling: str | None = None
    arithmetic: str = "fp32"
    # The place in the catalogue.
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
    variant_of: "KernelSpec | None" = field(default=None, compare=False)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Arguments that are buffers."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Array))

    @property
    def inputs(self) -> tuple[FilledArray, ...]:
        """Buffers that the kernel reads."""
        return tuple(argument for argument in self.arguments if isinstance(argument, FilledArray))

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Inputs in variables of the source."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Constant))

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """Arguments passed by value."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Scalar))

    @property
    def outputs(self) -> tuple[Array, ...]:
        """Buffers that the kernel writes, without scratch."""
        return tuple(array for array in self.arrays if array.writes)

    def peer(self, name: str) -> Peer:
        """Return the peer called `name`."""
        return as_peer(self.peers[name])

    def __repr__(self) -> str:
        """Return one line: `<KernelSpec softmax (basic), 3 workloads, variants naive, online>`."""
        variants = f", variants {', '.join(self.variants)}" if self.variants else ""
        workloads = count_text(len(self.workloads), "workload")
        return f"<KernelSpec {self.name or self.entry} ({self.family}), {workloads}{variants}>"

    def __post_init__(self) -> None:
        self._check_tolerances()
        require_kinds(self, self.label_in_errors, _ADVICE)
        names = [argument.name for argument in self.arguments]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise SpecError(f"{self.label_in_errors}: two arguments named {', '.join(doubled)}")
        odd = sorted(set(self.workloads) - set(LABELS))
        if odd:
            raise SpecError(f"{self.label_in_errors}: workload label {', '.join(odd)}; labels are S0, S1, S2")
        missing = sorted(set(self.only_labels or ()) - set(self.workloads))
        if missing:
            raise SpecError(f"{self.label_in_errors}: only_labels names {', '.join(missing)}, which has no workload")
        if self.callable is not None and self.constants:
            raise SpecError(f"{self.label_in_errors}: a callable sets no Constant; '{self.constants[0].name}' is one")
        self._check_promises()
        complaints = (chain.complaint(self.arguments, self.variants) for chain in self.chains)
        complaint = next(filter(None, complaints), None)
        if complaint:
            raise SpecError(f"{self.label_in_errors}: {complaint}")

    def _check_tolerances(self) -> None:
        """Raise a SpecError for a tolerance that is a plain number: it does not say of what."""
        by_output: dict[str, Any] = (
            dict(self.tolerance) if isinstance(self.tolerance, Mapping) else {"": self.tolerance}
        )
        for output, tolerance in by_output.items():
            if not isinstance(tolerance, Tolerance):
                of = f" of '{output}'" if output else ""
                number = tolerance if isinstance(tolerance, int | float) else 1e-5
                raise SpecError(
                    f"{self.label_in_errors}: tolerance{of} is {tolerance!r}, which does not say of what; write "
                    f"Tolerance('relative', relative={number}), absolute({number}), normwise({number}), elementwise() "
                    f"or another one of prism_bench"
                )

    def _check_promises(self) -> None:
        """Raise a SpecError unless `batch_invariant` names axes that batches have."""
        for axis in self.batch_invariant:
            where = f"{self.label_in_errors}: batch_invariant names '{axis}'"
            lacking = next((label for label, workload in self.workloads.items() if axis not in workload), None)
            if lacking or not self.workloads:
                known = ", ".join(self.workloads[lacking]) if lacking else ""
                raise SpecError(f"{where}, which is no axis of workload {lacking or 'S0'}: {known or 'it has none'}")
            for what, arrays in (("input", self.inputs), ("output", self.outputs)):
                if not any(axis in array.shape.split() for array in arrays):
                    raise SpecError(f"{where}, which is in the shape of no {what}; a batch is a dimension of both")

    @property
    def source_path(self) -> Path | None:
        """The CUDA source; None if the spec was not loaded from a catalogue and names none."""
        return None if self.source is None else Path(self.source)

    @property
    def source_file(self) -> Path:
        """The CUDA source; a SpecError is raised if the spec was not loaded from a catalogue."""
        if self.source is None:
            raise SpecError(f"{self.label_in_errors} has no source: load it from a catalogue")
        return Path(self.source)

    @property
    def written_in(self) -> str:
        """The language of its file by the suffix, `cuda` or `triton`; `callable` where Python launches it otherwise."""
        return "callable" if self.callable is not None and self.language == CUDA else self.language

    @property
    def label_in_errors(self) -> str:
        """The kernel's name, or its entry as long as the catalogue has not named it."""
        return str(self.name) or f"spec of '{self.entry}'"

    @property
    def tunable(self) -> tuple[str, ...]:
        """The names of `tune` that the launch or a derived size asks for: what varies here, in a variant too."""
        asked = {name for function in (self.launch, *self.derived.values()) for name in byname.wanted(function)}
        return tuple(name for name in self.tune.values if name in asked) if self.tune else ()

    def argument(self, name: str) -> Array | Scalar:
        """Return the argument called `name`."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise SpecError(f"{self.label_in_errors}: no argument is called '{name}'")

    def array(self, name: str) -> Array:
        """Return the buffer called `name`."""
        argument = self.argument(name)
        if not isinstance(argument, Array):
            raise SpecError(f"{self.label_in_errors}: argument '{name}' is no array")
        return argument

    def passed(self, step: Launch) -> tuple[str, ...]:
        """Return the names of the arguments that a launch passes, in order."""
        return step.arguments or tuple(a.name for a in self.arguments if not isinstance(a, Constant))

    def passed_bytes(self, step: Launch) -> tuple[int, ...]:
        """Return the bytes of each parameter that a launch passes: of an address, of a tensor map, or of a value."""
        sizes = {argument.name: argument.storage.itemsize for argument in self.arguments}
        sizes |= {array.name: POINTER_BYTES for array in self.arrays}
        sizes |= {tensor.name: MAP_TYPE.itemsize for tensor in step.maps}
        return tuple(sizes[name] for name in self.passed(step))

    def tolerance_of(self, output: str) -> Tolerance:
        """Return the tolerance of one output."""
        if isinstance(self.tolerance, Tolerance):
            return self.tolerance
        if output not in self.tolerance:
            raise SpecError(f"{self.label_in_errors}: no tolerance for output '{output}'")
        return self.tolerance[output]

    def with_variant(self, name: str) -> "KernelSpec":
        """Return the spec of a variant: the same kernel with its changes, without variants, aliases and peers.

        Notes on libraries that are no peers are dropped with the peers.
        """
        if name not in self.variants:
            raise unknown(f"variant of {self.name}", name, self.variants)
        changes = dict(self.variants[name].changes)
        odd = sorted(set(changes) - {field.name for field in fields(self)})
        if odd:
            raise SpecError(f"{self.name}: variant '{name}' changes {', '.join(odd)}, which no spec has")
        dropped: dict[str, Any] = {
            "variants": {},
            "aliases": (),
            "peers": {},
            "looked_at": {},
            "chains": (),
            "before": None,
        }
        try:
            return replace(self, **dropped | {"variant_of": self} | changes)
        except SpecError as error:
            raise SpecError(f"variant '{name}': {error}") from None
