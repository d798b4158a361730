"""A workload: a value for every axis of a kernel."""

from collections.abc import Mapping

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
