"""Shapes of the buffers of a Triton function, from the offsets of its accesses, and strides that agree with them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import gcd, prod

from prism_bench.extensions.init.sources.kernels import Guess
from prism_bench.extensions.init.sources.triton_body import Access, Body, Product, Sum

_CEILING = re.compile(r"^-\(-(.+) // (\w+)\)$")
_BLOCKS = "programs"  # an axis for what a grid has in a direction, where it is no axis by itself
_ENTRIES = "entries"  # an axis for rows that a kernel selects by a loaded index


@dataclass(frozen=True)
class Facts:
    """What the launch and the signature say of a kernel's parameters.

    `constants` are its `tl.constexpr` parameters with the value of each that is a number, `grid` the extents of the
    grid as expressions. `strides` are parameters passed as `x.stride(0)`, with the tensor and the axis, and `tensors`
    the host's tensors by parameter. `sizes` are parameters that the host computes from extents, and `order` has all.
    """

    constants: Mapping[str, int | None]
    grid: Sequence[str]
    strides: Mapping[str, tuple[str, int]]
    tensors: Mapping[str, str]
    sizes: Set[str]
    order: Sequence[str]


@dataclass
class Shapes:
    """Shapes by buffer, expressions of strides and of other axes that follow from sizes, and limits of axes."""

    of: dict[str, Guess[str]] = field(default_factory=dict[str, Guess[str]])
    derived: dict[str, str] = field(default_factory=dict[str, str])
    most: dict[str, int] = field(default_factory=dict[str, int])
    least: dict[str, int] = field(default_factory=dict[str, int])
    below: dict[str, str] = field(default_factory=dict[str, str])
    contradictions: list[str] = field(default_factory=list[str])


@dataclass
class _Axis:
    """An axis of a buffer: the stride as a product of names, the indices along it, the extent as a name or number."""

    stride: Product
    terms: list[Product]
    extent: str | None = None
    shift: Product | None = None
    scale: int = 1  # elements from one index to the next
    selected_by: str = ""  # the buffer whose elements are the index
    moves: bool = False  # a loop adds to the pointer along it


def shapes_of(body: Body, buffers: Sequence[str], facts: Facts) -> Shapes:
    """Return the shapes of the buffers that a kernel's offsets suggest."""
    shapes = Shapes()
    for buffer in buffers:
        accesses = [access for access in body.accesses if access.pointer == buffer]
        described = [access for access in accesses if access.descriptor is not None]
        candidates: list[list[_Axis]] = []
        if described:
            axes = _of_descriptor(described[0], body, facts, shapes)
        else:
            candidates = [
                _axes_of(access.offset, body, facts, shapes) for access in accesses if access.offset is not None
            ]
            axes = max(candidates, key=_known_axes, default=None)
        if axes is None:
            shapes.of[buffer] = Guess(_all_sizes(body, facts), "no offset that can be read; all sizes of the kernel")
            continue
        if buffer in body.labels:
            bound = body.bounds.get(frozenset(body.labels[buffer]))
            atoms = [atom for term in body.labels[buffer] for atom in term]
            bound = bound or next((body.atom_bounds[atom] for atom in atoms if atom in body.atom_bounds), None)
            shapes.below.setdefault(buffer, bound or "2")
        for axis in axes:
            axis.extent = axis.extent or _all_sizes(body, facts).split()[0]
        _settle(axes, buffer, facts, body, shapes)
        _fill_indices(candidates, axes, shapes)
        text = " ".join(str(axis.extent) for axis in axes) or "1"
        shapes.of[buffer] = Guess(text, _reason(axes))
    return shapes


def _known_axes(axes: Sequence[_Axis]) -> tuple[int, int]:
    return len(axes), sum(axis.extent is not None and not axis.selected_by for axis in axes)


def _fill_indices(candidates: Sequence[Sequence[_Axis]], axes: Sequence[_Axis], shapes: Shapes) -> None:
    """Let a buffer whose elements select along an axis have indices below its extent."""
    extents = {axis.stride: axis.extent for axis in axes}
    for axis in (axis for axes_there in candidates for axis in axes_there if axis.selected_by):
        extent = extents.get(axis.stride)
        shapes.below[axis.selected_by] = extent or _ENTRIES


def _reason(axes: Sequence[_Axis]) -> str:
    strides = [" * ".join(axis.stride) for axis in axes if axis.stride]
    return f"offsets by {', '.join(strides)}" if strides else "the bound of its index"


def _all_sizes(body: Body, facts: Facts) -> str:
    bounds = dict.fromkeys([*body.bounds.values(), *body.atom_bounds.values()])
    names = [name for name in bounds if name in facts.order and name not in facts.strides]
    return " ".join(names[:3]) or "n"


def _of_descriptor(access: Access, body: Body, facts: Facts, shapes: Shapes) -> list[_Axis] | None:
    descriptor = access.descriptor
    assert descriptor is not None
    axes: list[_Axis] = []
    for place, extent in enumerate(descriptor.extents):
        name = extent[0][0] if len(extent) == 1 and len(extent[0]) == 1 else None
        if name is None:
            return None
        stride = descriptor.strides[place] if place < len(descriptor.strides) else ()
        names = tuple(name for name in (stride[0] if len(stride) == 1 else ()) if not name.isdigit())
        axes.append(_Axis(names, [], name))
    inside = {axis.stride for axis in axes}
    outer = [axis for axis in _axes_of(descriptor.offset, body, facts, shapes) if axis.stride not in inside]
    return [*outer, *axes]


# Axes of an offset: terms with the same stride are indices along one axis.


def _axes_of(offset: Sum | None, body: Body, facts: Facts, shapes: Shapes) -> list[_Axis]:
    if offset is None:
        return []
    axes, rest = _bounded(offset, body)
    groups: dict[Product, _Axis] = {}
    for term in rest:
        atoms = [factor for factor in term if factor.startswith("%")]
        inside = _tile(term, rest, body, facts)
        names = tuple(sorted(factor for factor in term if _is_name(factor) and factor not in inside))
        numbers = [factor for factor in term if factor.lstrip("-").isdigit()]
        if not atoms and not names:
            continue
        if not atoms and names and not inside:
            groups.setdefault((), _Axis((), [])).shift = names
            continue
        axis = groups.setdefault(names, _Axis(names, []))
        axis.moves |= not atoms
        if atoms:
            axis.terms.append(tuple(sorted([*atoms, *inside, *numbers])))
    for known in axes:
        if known.stride in groups and not groups[known.stride].terms:
            known.shift = groups.pop(known.stride).shift
    for axis in groups.values():
        axes += _split(_without_factor(axis), body, facts, shapes)
    order = {name: place for place, name in enumerate(facts.order)}
    host = {name: place for name, (_, place) in facts.strides.items()}

    def place_of(axis: _Axis) -> tuple[float, ...]:
        if not axis.stride:
            return (3, 0, 0)
        first = axis.stride[0]
        if len(axis.stride) == 1 and first in host:
            place = host[first]
            return (1, 0, place if place >= 0 else 100 + place)
        is_stride = len(axis.stride) == 1 and "stride" in first.lower()
        return (1 if is_stride else 2, -len(axis.stride), order.get(first, 0))

    return [part for axis in sorted(axes, key=place_of) for part in _repeated(axis)]


def _without_factor(axis: _Axis) -> _Axis:
    """Return the axis with the number that all of its indices have as a factor as its scale: `row * 2 * d`."""
    numbers = [[int(factor) for factor in term if factor.isdigit()] for term in axis.terms]
    scale = gcd(*map(prod, numbers)) if axis.stride and axis.terms and all(len(some) == 1 for some in numbers) else 1
    if scale < 2 or any(some != [scale] for some in numbers):
        return axis
    terms = [tuple(factor for factor in term if not factor.isdigit()) for term in axis.terms]
    return replace(axis, terms=terms, scale=scale)


def _repeated(axis: _Axis) -> list[_Axis]:
    """Return an axis with a scale as two axes, the inner one as long as the scale: rows of `2 * d` are `2 d`."""
    if axis.scale == 1 or not axis.stride:
        return [axis]
    return [replace(axis, stride=(str(axis.scale), *axis.stride), scale=1), _Axis(axis.stride, [], str(axis.scale))]


def _bounded(offset: Sum, body: Body) -> tuple[list[_Axis], list[Product]]:
    """Return the axes whose index is compared with a bound as a whole, and the other terms of the offset."""
    axes: list[_Axis] = []
    rest = list(offset)
    for key, bound in sorted(body.bounds.items(), key=lambda entry: -len(entry[0])):
        parts = [Counter(term) for term in key]
        whole = next((term for term in key if any(factor.startswith("%arange") for factor in term)), None)
        if whole is None or len(key) < 2:
            continue
        for term in rest:
            stride = Counter(term) - Counter(whole)
            if Counter(term) != stride + Counter(whole):
                continue
            wanted = [tuple(sorted((part + stride).elements())) for part in parts]
            if all(product in rest for product in wanted):
                rest = [product for product in rest if product not in wanted]
                names = tuple(sorted(factor for factor in stride.elements() if _is_name(factor)))
                scale = prod(int(factor) for factor in stride.elements() if factor.isdigit())
                axes.append(_Axis(names, list(key), bound, scale=scale))
                break
    return axes, rest


def _tile(term: Product, offset: Sequence[Product], body: Body, facts: Facts) -> list[str]:
    """Return the constants of a term that are sizes of tiles: `pid * BLOCK` next to `arange(0, BLOCK)`."""
    if any(factor.startswith("%arange") for factor in term):
        return []
    inside: list[str] = []
    for factor in term:
        if _is_name(factor) and factor in facts.constants:
            others = sorted(name for name in term if _is_name(name) and name != factor)
            ranged = [sorted(name for name in other if _is_name(name)) for other in offset
                      if any(body.ranges.get(atom) == (factor,) for atom in other)]  # fmt: skip
            if others in ranged or not any(atom.startswith("%") for atom in term):
                inside.append(factor)
    return inside


def _is_name(factor: str) -> bool:
    return not factor.startswith("%") and not factor.lstrip("-").isdigit()


def _split(axis: _Axis, body: Body, facts: Facts, shapes: Shapes) -> list[_Axis]:
    """Return the axis with its extent; `row * SIZE + arange(0, SIZE)` without a bound makes two axes."""
    if not axis.terms:
        return [axis] if axis.stride else []
    atoms = {atom for term in axis.terms for atom in term if atom.startswith("%")}
    ranged = sorted(atom for atom in atoms if atom.startswith("%arange"))
    axis.extent = axis.extent or body.bounds.get(frozenset(axis.terms))
    axis.extent = axis.extent or next((body.atom_bounds[atom] for atom in ranged if atom in body.atom_bounds), None)
    if axis.extent is not None:
        if ranged and len(axis.terms) == 1 and not axis.moves:
            _limit(axis.extent, body.ranges[ranged[0]], facts, shapes.most)
        return [axis]
    if not ranged:
        bounded = [body.atom_bounds[atom] for atom in sorted(atoms) if atom in body.atom_bounds]
        axis.extent = bounded[0] if bounded else _of_programs(axis, body, facts, shapes)
        return [axis]
    size = body.ranges[ranged[0]]
    outer = [term for term in axis.terms if not any(atom in ranged for atom in term) and set(size) & set(term)]
    axis.extent = " ".join(size) if len(size) == 1 else None
    if not outer:
        return [axis]
    indices = [tuple(factor for factor in term if factor not in size) for term in outer]
    pid = next((atom for term in indices for atom in term if atom.startswith("%pid")), None)
    match = _CEILING.match(_grid(int(pid[4:]), facts)) if pid and len(indices) == 1 else None
    if match and match[1].isidentifier():
        axis.extent = match[1]
        _limit(match[1], size, facts, shapes.least)
        return [axis]
    (rows,) = _split(_Axis((*axis.stride, *size), indices), body, facts, shapes)[:1]
    return [rows, _Axis(axis.stride, [term for term in axis.terms if term not in outer], axis.extent)]


def _limit(axis: str, size: Product, facts: Facts, limits: dict[str, int]) -> None:
    value = facts.constants.get(size[0]) if len(size) == 1 else None
    if value is not None and facts.constants.get(axis) is None:
        limits[axis] = value


def _grid(number: int, facts: Facts) -> str:
    text = facts.grid[number] if number < len(facts.grid) else "1"
    return text[1:-1] if re.fullmatch(r"\([^()]*\)", text) else text


def _axis_name(grid: str, number: int, shapes: Shapes) -> str:
    """Return the axis that the grid has in a direction; an expression becomes a derived axis."""
    if grid.isidentifier() or grid.isdigit():
        return grid
    name = f"{_BLOCKS}_{number}"
    shapes.derived[name] = grid
    return name


def _of_programs(axis: _Axis, body: Body, facts: Facts, shapes: Shapes) -> str | None:
    """Return the extent of an axis along which programs, or parts of their number, are the index."""
    atoms = [atom for term in axis.terms for atom in term if atom.startswith("%")]
    loaded = next((atom for atom in atoms if atom.startswith("%loaded:")), None)
    if loaded is not None:
        axis.selected_by = loaded.partition(":")[2]
        return _ENTRIES
    if len(axis.terms) != 1:
        return None
    atom = atoms[0]
    if atom.startswith("%pid"):
        return _axis_name(_grid(int(atom[4:]), facts), int(atom[4:]), shapes)
    if atom in body.divided:
        (left, divisor) = body.divided[atom]
        if len(left) == 1 and len(left[0]) == 1 and left[0][0].startswith("%pid"):
            factors = re.findall(r"\w+", _grid(int(left[0][0][4:]), facts))
            rest = [factor for factor in factors if factor != divisor]
            return rest[0] if len(rest) == 1 and divisor in factors else None
    return None


# Strides that agree with the extents, and extents that agree with sizes used as strides.


def _settle(axes: list[_Axis], buffer: str, facts: Facts, body: Body, shapes: Shapes) -> None:
    bounds = {*body.bounds.values(), *body.atom_bounds.values()}
    described = [access.descriptor for access in body.accesses if access.descriptor is not None]
    bounds |= {name for descriptor in described for extent in descriptor.extents for term in extent for name in term}
    bounds |= body.sizes | facts.sizes
    bounds |= {name for axis in axes if len(axis.stride) > 1 for name in axis.stride}  # strides are no factors
    for outer, inner in list(pairwise(axes)):
        if outer.stride and not any(_is_stride(name, facts, bounds) for name in outer.stride):
            rest = [*(Counter(outer.stride) - Counter(inner.stride)).elements()]
            rest.sort(key=lambda name: facts.order.index(name) if name in facts.order else -1)
            if inner.extent in rest:  # the nearest axis of several that a stride counts
                rest.append(rest.pop(rest.index(inner.extent)))
            if rest and Counter(inner.stride) <= Counter(outer.stride):
                place = next(number for number, axis in enumerate(axes) if axis is inner)
                axes[place:place] = [
                    _Axis((*rest[number + 1 :], *inner.stride), [], name) for number, name in enumerate(rest[:-1])
                ]
                inner.extent = rest[-1]
    last = axes[-1] if axes else None
    if last is not None and last.shift is not None and last.shift == (last.extent,) and not _is_part(axes):
        shapes.derived[f"{last.extent}_twice"] = f"2 * {last.extent}"
        last.extent = f"{last.extent}_twice"
    if last is not None and not last.stride and last.scale > 1:
        name = f"{last.extent}_times_{last.scale}"
        shapes.derived[name] = f"{last.scale} * {last.extent}"
        last.extent = name
    for place, axis in enumerate(axes):
        if len(axis.stride) == 1 and _is_stride(axis.stride[0], facts, bounds):
            inner = [str(following.extent) for following in axes[place + 1 :]]
            _set_stride(axis.stride[0], " * ".join(inner) or "1", buffer, shapes)


def _is_part(axes: Sequence[_Axis]) -> bool:
    """Return whether the last axis is one of several in a row of a multiple of its extent: `row * 2 * d + d + at`."""
    return len(axes) > 1 and str(axes[-2].extent).isdigit() and axes[-2].stride == (axes[-1].extent,)


def _is_stride(name: str, facts: Facts, bounds: set[str]) -> bool:
    if name.isdigit():
        return False
    return name in facts.strides or "stride" in name.lower() or (name not in bounds and name not in facts.constants)


def _set_stride(name: str, text: str, buffer: str, shapes: Shapes) -> None:
    if name in text.split():
        return
    known = shapes.derived.setdefault(name, text)
    if known != text:
        shapes.contradictions.append(f"{name} is {known} elsewhere and {text} for {buffer}")
