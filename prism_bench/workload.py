"""A workload: a value for every axis of a kernel."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prism_bench.errors import SpecError

LABELS = ("S0", "S1", "S2")


class Workload(Mapping):
    """`Workload(rows=32, cols=128)`: immutable, ordered as written, hashable."""

    __slots__ = ("_axes",)

    def __init__(self, **axes):
        object.__setattr__(self, "_axes", dict(axes))

    def __setattr__(self, name, value):
        raise AttributeError("a Workload does not change; make another one")

    def __getitem__(self, axis):
        return self._axes[axis]

    def __iter__(self):
        return iter(self._axes)

    def __len__(self):
        return len(self._axes)

    def __hash__(self):
        return hash(frozenset(self._axes.items()))

    def __eq__(self, other):
        return isinstance(other, Workload) and self._axes == other._axes

    def __str__(self):
        return ",".join(f"{axis}={value}" for axis, value in self._axes.items())

    def __repr__(self):
        return f"Workload({', '.join(f'{axis}={value!r}' for axis, value in self._axes.items())})"


@dataclass(frozen=True)
class Edge:
    """A workload that is verified with fills of its own, by argument; the other inputs are filled as usual.

    `name` tells it apart from the same workload with the usual values. `regime` marks those that follow from the
    domains of the arguments.
    """

    name: str
    workload: Workload
    fills: Mapping[str, object] = field(compare=False)
    regime: bool = False

    def __post_init__(self):
        if not self.name or set(self.name) & set("[]:,=@"):
            raise SpecError(f"edge '{self.name}': its name is words without any of []:,=@")
