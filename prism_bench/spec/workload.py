"""What varies of a kernel: workloads and edges, rules on them, tuned launches, variants and chains of fusion."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NoReturn

from prism_bench.errors import SpecError, UsageError
from prism_bench.spec import arguments as byname
from prism_bench.spec.arguments import Array, Scalar, Scratch
from prism_bench.spec.inputs import Fill
from prism_bench.spec.kinds import Noun, listed, require

LABELS = ("S0", "S1", "S2")
_AxisValue = float | str | bool | None


class Workload(Mapping[str, Any]):
    """Values of axes: `Workload(rows=32, cols=128)` is immutable, ordered as written and hashable."""

    __slots__ = ("_axes",)
    _axes: dict[str, Any]

    def __init__(self, **axes: Any) -> None:
        for axis, value in axes.items():
            require(f"Workload: {axis}", value, _AxisValue)
        object.__setattr__(self, "_axes", dict(axes))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Workload does not change; make another one")

    def __getitem__(self, axis: str) -> Any:
        return self._axes[axis]

    def __iter__(self) -> Iterator[str]:
        return iter(self._axes)

    def __len__(self) -> int:
        return len(self._axes)

    def __hash__(self) -> int:
        return hash(frozenset(self._axes.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self._axes == other._axes

    def __str__(self) -> str:
        return ",".join(f"{axis}={value}" for axis, value in self._axes.items())

    def __repr__(self) -> str:
        return f"Workload({', '.join(f'{axis}={value!r}' for axis, value in self._axes.items())})"


@dataclass(frozen=True)
class Edge(Noun):
    """Workload that is verified with its own fills, by argument; the other inputs are filled as usual.

    `name` distinguishes it from the same workload with the usual values. `regime` marks those that follow from the
    domains of the arguments.
    """

    name: str
    workload: Workload
    fills: Mapping[str, Fill] = field(compare=False)
    regime: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name or set(self.name) & set("[]:,=@"):
            raise SpecError(f"edge '{self.name}': its name is words without any of []:,=@")


@dataclass(frozen=True)
class Rule(Noun):
    """Condition on axes: `text` gives it in words, `holds` asks for axes by name."""

    text: str
    holds: Callable[..., object]


@dataclass(frozen=True)
class Tune(Noun):
    """Values of each name, the default first: `Tune(block=(256, 128, 512), groups=(1, 2, 4))`.

    Launches and derived sizes ask for the names as for axes. `rules` are what a configuration must keep at a workload;
    they may ask for axes, derived sizes and `device` too. `default` has a function of axes and parameters for each name
    whose default depends on them.
    """

    values: Mapping[str, tuple[Hashable, ...]]
    rules: tuple[Rule, ...] = ()
    default: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])

    def __init__(
        self,
        *,
        rules: Iterable[Rule] = (),
        default: Mapping[str, Callable[..., Any]] | None = None,
        **values: Iterable[Any],
    ) -> None:
        object.__setattr__(self, "values", {name: listed(among) for name, among in values.items()})
        for name, among in self.values.items():
            require(f"Tune: {name}", among, tuple[Hashable, ...])
        object.__setattr__(self, "rules", listed(rules))
        object.__setattr__(self, "default", {} if default is None else default)
        super().__post_init__()
        self._refuse_empty()

    def _refuse_empty(self) -> None:
        if not self.values:
            raise SpecError("Tune() names nothing that may vary: Tune(block=(256, 128, 512))")
        for name, among in self.values.items():
            if not among:
                raise SpecError(f"tune: '{name}' has no value to take")
            if len(set(among)) < len(among):
                raise SpecError(f"tune: '{name}' names a value twice: {', '.join(map(str, among))}")
        odd = sorted(set(self.default) - set(self.values))
        if odd:
            raise SpecError(f"tune: a default for '{odd[0]}', which is none of: {', '.join(self.values)}")

    def defaults(self, axes: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the default of every name at a workload."""
        return {
            name: byname.call(self.default[name], axes, f"{where}: default of '{name}'")
            if name in self.default
            else among[0]
            for name, among in self.values.items()
        }

    def product(self, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """Yield every combination of the values of these names, whether or not it keeps the rules."""
        for combined in product(*(self.values[name] for name in names)):
            yield dict(zip(names, combined, strict=True))

    def broken(self, offered: Mapping[str, Any], where: str) -> Rule | None:
        """Return the first rule that a configuration breaks, None if it keeps them all."""
        return next((rule for rule in self.rules if not byname.call(rule.holds, offered, f"{where}: tune")), None)

    def parsed(self, text: str, where: str) -> dict[str, Any]:
        """Return the configuration that `block=128,groups=2` means; raise a UsageError that lists what is possible."""
        chosen: dict[str, Any] = {}
        for word in text.split(","):
            name, _, value = word.partition("=")
            if name not in self.values:
                raise UsageError(f"{where}: '{word}' sets none of: {', '.join(self.values)}")
            fitting = [choice for choice in self.values[name] if str(choice) == value]
            if not fitting:
                among = ", ".join(map(str, self.values[name]))
                raise UsageError(f"{where}: {name} is '{value}'; it is one of {among}")
            chosen[name] = fitting[0]
        return chosen


def written(configuration: Mapping[str, object]) -> str:
    """Return `block=128,groups=2` of a configuration."""
    return ",".join(f"{name}={value}" for name, value in configuration.items())


STAGES = ("baseline", "partial", "full", "persistent")


@dataclass(frozen=True)
class Variant(Noun):
    """Another implementation of the same spec: the fields of KernelSpec that differ, by name."""

    meaning: str
    changes: Mapping[str, Any]

    def __init__(self, meaning: str, **changes: Any) -> None:
        object.__setattr__(self, "meaning", meaning)
        object.__setattr__(self, "changes", changes)
        super().__post_init__()


@dataclass(frozen=True)
class Chain(Noun):
    """Stages of fusion: for each of `STAGES` the variant that does it, None for the kernel itself.

    `between` names the scratch arrays that launches hand on to later ones, which fusion removes; all other scratch is a
    launch's own workspace.
    """

    name: str
    stages: Mapping[str, str | None]
    between: tuple[str, ...] = ()

    def complaint(self, arguments: Iterable[Array | Scalar], variants: Mapping[str, Variant]) -> str | None:
        """Return what in the chain contradicts a spec with these arguments and variants, or None."""
        every = [*arguments, *(a for variant in variants.values() for a in variant.changes.get("arguments", ()))]
        scratch = {array.name for array in every if isinstance(array, Scratch)}
        odd = {
            "stage": [stage for stage in self.stages if stage not in STAGES],
            "variant": [name for name in self.stages.values() if name is not None and name not in variants],
            "scratch array": [name for name in self.between if name not in scratch],
        }
        wrong = [f"there is no {kind} {', '.join(names)}" for kind, names in odd.items() if names]
        missing = [] if "baseline" in self.stages else ["it has no baseline"]
        return f"chain '{self.name}': {'; '.join(wrong + missing)}" if wrong or missing else None
