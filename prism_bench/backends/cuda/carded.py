"""Launches by card: what another compiler's machine code takes, in its order, with its hidden parameters."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from prism_bench.errors import SpecError
from prism_bench.spec.launch import CardParameter, LaunchCard

Triple = tuple[int, int, int]
_FACTS: Mapping[str, Callable[[Any, int], int]] = {
    "shape": lambda array, axis: array.shape[axis],
    "stride": lambda array, axis: array.strides[axis] // array.itemsize,
    "bytes": lambda array, axis: array.strides[axis],
    "size": lambda array, _: array.size,
    "itemsize": lambda array, _: array.itemsize,
    "axes": lambda array, _: array.ndim,
}  # what a parameter may take of an array, by the word behind its name


def launch_facts(grid: Triple, block: Triple) -> dict[str, int]:
    """Return the facts of a launch by the words that a card has for them."""
    blocks, threads = prod(grid), prod(block)
    extents = {f"launch.grid.{axis}": extent for axis, extent in enumerate(grid)}
    return {**extents, "launch.blocks": blocks, "launch.block": threads, "launch.threads": blocks * threads}


def card_values(
    card: LaunchCard, value_of: Callable[[str], Any], scratch: Any | None, facts: Mapping[str, int] | None = None
) -> tuple[Any, ...]:
    """Return the values of a card's parameters in order: device arrays, NumPy scalars and structures by value.

    `value_of` returns an argument of the kernel by name; the first hidden parameter is the device array `scratch`;
    `facts` are those of the launch.
    """
    values: list[Any] = []
    for members in card.structures:
        own = [_value(one, value_of, facts or {}) for one in members]
        if members[0].kind == "hidden":
            own, scratch = [np.uint64(0) if scratch is None else scratch], None
        values.append(own[0] if len(members) == 1 else _structure(members, own))
    return tuple(values)


def _structure(members: tuple[CardParameter, ...], values: list[Any]) -> np.ndarray:
    """Return an array of one structure, which CuPy passes by value; of an array on the device it has the address."""
    kinds = [np.uint64 if one.kind in ("pointer", "hidden") else np.dtype(one.kind) for one in members]
    dtype = np.dtype([(f"m{index}", kind) for index, kind in enumerate(kinds)], align=True)
    return np.array([tuple(value.data.ptr if hasattr(value, "data") and hasattr(value.data, "ptr") else value
                           for value in values)], dtype)  # fmt: skip


def _value(parameter: CardParameter, value_of: Callable[[str], Any], facts: Mapping[str, int]) -> Any:
    if parameter.kind in ("pointer", "hidden"):
        return value_of(parameter.value) if parameter.value else np.uint64(0)
    number = _number(parameter.value, value_of, facts) if parameter.value else 0
    return np.dtype(parameter.kind).type(number)


def _number(text: str, value_of: Callable[[str], Any], facts: Mapping[str, int]) -> Any:
    """Return a scalar argument, or a fact of an array or the launch: `x.shape.0`."""
    if text in facts or text.isdecimal():
        return facts[text] if text in facts else int(text)
    name, _, fact = text.partition(".")
    if not fact:
        return value_of(name)
    word, _, axis = fact.partition(".")
    if word not in _FACTS:
        raise SpecError(f"launch card: '{text}' is no fact of an array; there are {', '.join(_FACTS)}")
    return _FACTS[word](value_of(name), int(axis or 0))


def scratch_bytes(card: LaunchCard, grid: Triple) -> int:
    """Return the global memory that a launch of so many blocks needs for the compiler's own use."""
    blocks = prod(grid) * prod(card.cluster)
    return blocks * -(-card.scratch_bytes // max(card.scratch_align, 1)) * max(card.scratch_align, 1)


def block_of(card: LaunchCard, declared: Triple) -> Triple:
    """Return the threads of a block: the card's, or those of the launch where the card leaves them open.

    A SpecError where the launch has others than the card.
    """
    if not any(card.block):
        return declared
    if all(declared) and declared != card.block:
        raise SpecError(
            f"{card.entry}: the launch has {'x'.join(map(str, declared))} threads a block; the compiler made it for "
            f"{'x'.join(map(str, card.block))}"
        )
    return card.block
