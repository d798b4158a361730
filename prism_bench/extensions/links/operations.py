"""Operations on several GPUs of one host: inputs, float64 references, and the least bytes to move."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from prism_bench.errors import UsageError, unknown
from prism_bench.spec.dtypes import UNIT_ROUNDOFF
from prism_bench.spec.inputs import AnyArray, ArrayModule
from prism_bench.spec.tolerance import Tolerance, exact, normwise

Axes = Mapping[str, int]
Inputs = Sequence[Mapping[str, AnyArray]]  # by device
ELEMENTS = {"small": 3 << 6, "S0": 1 << 18, "S1": 1 << 24, "S2": 1 << 26}  # floats that a device holds, about
_PRODUCTS = {
    "small": {"m": 80, "n": 72, "k": 64},
    "S0": {"m": 256, "n": 4096, "k": 8192},
    "S1": {"m": 4096, "n": 4096, "k": 4096},
    "S2": {"m": 8192, "n": 8192, "k": 8192},
}
LABELS = tuple(ELEMENTS)


@dataclass(frozen=True)
class LinkOperation:
    """An operation; `axes` returns its axes for a label and a number of devices, the other functions take these axes.

    `shapes` are the shapes of a device's inputs, `output` is the shape of its output, all of `dtype`. `expected`
    returns the right output of each device in float64, `magnitude` the sum of absolute terms if the tolerance needs it.
    `sent` is the least number of bytes that each device sends, `flops` the floating-point operations of all devices.
    """

    name: str
    forms: tuple[str, ...]
    dtype: str
    axes: Callable[[str, int], Axes]
    shapes: Callable[[Axes], Mapping[str, tuple[int, ...]]]
    output: Callable[[Axes], tuple[int, ...]]
    expected: Callable[[Axes, Inputs, ArrayModule], list[AnyArray]]
    sent: Callable[[Axes], float]
    tolerance: Tolerance = exact()
    magnitude: Callable[[Inputs, ArrayModule], AnyArray] | None = None
    flops: Callable[[Axes], int] = lambda _: 0
    is_link_ceiling: bool = True


@dataclass(frozen=True)
class GroupCase:
    """An operation in a form, such as `nccl`, at a label on a number of devices."""

    operation: LinkOperation
    form: str
    label: str
    axes: Axes

    @property
    def devices(self) -> int:
        """The number of devices."""
        return self.axes["devices"]

    @property
    def name(self) -> str:
        """`all_reduce:nccl[devices=2,elements=1048576]`."""
        sizes = ",".join(f"{axis}={size}" for axis, size in self.axes.items())
        return f"{self.operation.name}:{self.form}[{sizes}]"

    @property
    def task(self) -> str:
        """Text from which `case_of` makes the same case."""
        return f"{self.operation.name}:{self.form}@{self.label}@{self.devices}"

    def inputs(self, device: int) -> dict[str, np.ndarray]:
        """Return the arrays of a device, the same at each call."""
        rng = np.random.default_rng([len(self.operation.name), device])
        shapes = self.operation.shapes(self.axes)
        return {
            name: rng.standard_normal(shape, np.float32).astype(self.operation.dtype) for name, shape in shapes.items()
        }


def _of_elements(label: str, devices: int) -> Axes:
    return {"devices": devices, "elements": ELEMENTS[label] // devices * devices}


def _of_product(label: str, devices: int) -> Axes:
    """Return the axes of a product whose depth is divided among the devices, in whole vectors of eight."""
    sizes = _PRODUCTS[label]
    return {"devices": devices, **sizes, "k": -(-sizes["k"] // (8 * devices)) * 8}


def _floats(axes: Axes) -> Mapping[str, tuple[int, ...]]:
    return {"x": (axes["elements"],)}


def _part(axes: Axes) -> Mapping[str, tuple[int, ...]]:
    return {"x": (axes["elements"] // axes["devices"],)}


def _all(axes: Axes) -> tuple[int, ...]:
    return (axes["elements"],)


def _of_previous(axes: Axes, inputs: Inputs, xp: ArrayModule) -> list[AnyArray]:
    return [inputs[(device - 1) % len(inputs)]["x"].astype("float64") for device in range(len(inputs))]


def _gathered(axes: Axes, inputs: Inputs, xp: ArrayModule) -> list[AnyArray]:
    return [xp.concatenate([arrays["x"] for arrays in inputs]).astype("float64")] * len(inputs)


def _exchanged(axes: Axes, inputs: Inputs, xp: ArrayModule) -> list[AnyArray]:
    rows = [arrays["x"].reshape(len(inputs), -1) for arrays in inputs]
    return [xp.concatenate([row[device] for row in rows]).astype("float64") for device in range(len(inputs))]


def _summed(axes: Axes, inputs: Inputs, xp: ArrayModule) -> list[AnyArray]:
    return [sum(arrays["x"].astype("float64") for arrays in inputs)] * len(inputs)


def _sizes_summed(inputs: Inputs, xp: ArrayModule) -> AnyArray:
    return sum(xp.abs(arrays["x"].astype("float64")) for arrays in inputs)


def _product(axes: Axes, inputs: Inputs, xp: ArrayModule) -> list[AnyArray]:
    products = (arrays["a"].astype("float64") @ arrays["b"].astype("float64") for arrays in inputs)
    return [sum(products)] * len(inputs)


def _counted(axes: Axes, inputs: Inputs, xp: ArrayModule) -> list[AnyArray]:
    return [xp.full(1, axes["devices"], "uint64")] * axes["devices"]


def _share_sent(axes: Axes, item: int = 4) -> float:
    """Return the bytes of all parts except its own that a device sends in an all-gather or an all-to-all."""
    return item * axes["elements"] * (axes["devices"] - 1) / axes["devices"]


OPERATIONS = {
    operation.name: operation
    for operation in (
        LinkOperation(
            "meet", ("kernel",), "uint64", lambda _, devices: {"devices": devices}, lambda _: {}, lambda _: (1,),
            _counted, lambda _: 0.0, is_link_ceiling=False,
        ),
        LinkOperation("peer_copy", ("driver",), "float32", _of_elements, _floats, _all, _of_previous,
                  lambda axes: 4.0 * axes["elements"]),
        LinkOperation("all_gather", ("nccl",), "float32", _of_elements, _part, _all, _gathered, _share_sent),
        LinkOperation("all_to_all", ("nccl",), "float32", _of_elements, _floats, _all, _exchanged, _share_sent),
        LinkOperation(
            "all_reduce", ("nccl",), "float32", _of_elements, _floats, _all, _summed,
            lambda axes: 2 * _share_sent(axes), Tolerance("reduction", terms=UNIT_ROUNDOFF["float32"]), _sizes_summed,
        ),
        LinkOperation(
            "matmul_all_reduce", ("fused", "nccl"), "float16", _of_product,
            lambda axes: {"a": (axes["m"], axes["k"]), "b": (axes["k"], axes["n"])},
            lambda axes: (axes["m"], axes["n"]), _product,
            lambda axes: 4.0 * axes["m"] * axes["n"] * (axes["devices"] - 1) / axes["devices"], normwise(2e-3),
            flops=lambda axes: 2 * axes["devices"] * prod(axes[axis] for axis in "mnk"), is_link_ceiling=False,
        ),
    )
}  # fmt: skip


def with_terms(operation: LinkOperation, devices: int) -> Tolerance:
    """Return the tolerance of a sum over the devices: each addition rounds once."""
    terms = operation.tolerance.terms
    return operation.tolerance if callable(terms) or not terms else replace(operation.tolerance, terms=terms * devices)


def case_of(task: str) -> GroupCase:
    """Return the case of a task's text."""
    name_and_form, label, devices = task.split("@")
    name, _, form = name_and_form.partition(":")
    operation = OPERATIONS[name]
    return GroupCase(operation, form, label, operation.axes(label, int(devices)))


def chosen(names: Sequence[str], labels: Sequence[str], devices: int) -> list[GroupCase]:
    """Return a case for each operation of the names (all without names), form and label; the first is `meet`."""
    for name in names:
        if name not in OPERATIONS:
            raise unknown("operation", name, OPERATIONS)
    for label in labels:
        if label not in LABELS:
            raise unknown("label", label, LABELS)
    if devices < 2:
        raise UsageError(f"--devices {devices}: links are between two GPUs at least")
    cases: dict[str, GroupCase] = {}
    for label in labels:
        for operation in (operation for name, operation in OPERATIONS.items() if not names or name in names):
            for form in operation.forms:
                case = GroupCase(operation, form, label, operation.axes(label, devices))
                cases.setdefault(case.name, case)  # an operation without sizes is the same case at every label
    return list(cases.values())
