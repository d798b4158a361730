"""Workload: a value for every axis of a kernel."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from prism_bench.errors import SpecError
from prism_bench.spec.inputs import Fill

LABELS = ("S0", "S1", "S2")


class Workload(Mapping[str, Any]):
    """Values of axes: `Workload(rows=32, cols=128)` is immutable, ordered as written and hashable."""

    __slots__ = ("_axes",)
    _axes: dict[str, Any]

    def __init__(self, **axes: Any) -> None:
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
class Edge:
    """Workload that is verified with its own fills, by argument; the other inputs are filled as usual.

    `name` distinguishes it from the same workload with the usual values. `regime` marks those that follow from the
    domains of the arguments.
    """

    name: str
    workload: Workload
    fills: Mapping[str, Fill] = field(compare=False)
    regime: bool = False

    def __post_init__(self) -> None:
        if not self.name or set(self.name) & set("[]:,=@"):
            raise SpecError(f"edge '{self.name}': its name is words without any of []:,=@")
