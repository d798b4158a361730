"""Launches by card: what another compiler's machine code takes, in its order, with its hidden parameters."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from prism_bench.card import CardParameter, LaunchCard
from prism_bench.errors import SpecError

_FACTS: Mapping[str, Callable[[Any, int], int]] = {
    "shape": lambda array, axis: array.shape[axis],
    "stride": lambda array, axis: array.strides[axis] // array.itemsize,
    "bytes": lambda array, axis: array.strides[axis],
    "size": lambda array, _: array.size,
    "itemsize": lambda array, _: array.itemsize,
}  # what a parameter may take of an array, by the word behind its name


def card_values(card: LaunchCard, value_of: Callable[[str], Any], scratch: Any | None) -> tuple[Any, ...]:
    """Return the values of a card's parameters in order: device arrays and NumPy scalars.

    `value_of` returns an argument of the kernel by name; the first hidden parameter is the device array `scratch`.
    """
    values: list[Any] = []
    for parameter in card.parameters:
        if parameter.kind == "hidden":
            values.append(np.uint64(0) if scratch is None else scratch)
            scratch = None
        else:
            values.append(_value(parameter, value_of))
    return tuple(values)


def _value(parameter: CardParameter, value_of: Callable[[str], Any]) -> Any:
    if parameter.kind == "pointer":
        return value_of(parameter.value) if parameter.value else np.uint64(0)
    number = _number(parameter.value, value_of) if parameter.value else 0
    return np.dtype(parameter.kind).type(number)


def _number(text: str, value_of: Callable[[str], Any]) -> Any:
    """Return a scalar argument, or a fact of an array: `x.shape.0`."""
    name, _, fact = text.partition(".")
    if not fact:
        return value_of(name)
    word, _, axis = fact.partition(".")
    if word not in _FACTS:
        raise SpecError(f"launch card: '{text}' is no fact of an array; there are {', '.join(_FACTS)}")
    return _FACTS[word](value_of(name), int(axis or 0))


def scratch_bytes(card: LaunchCard, grid: tuple[int, int, int]) -> int:
    """Return the global memory that a launch of so many blocks needs for the compiler's own use."""
    blocks = prod(grid) * prod(card.cluster)
    return blocks * -(-card.scratch_bytes // max(card.scratch_align, 1)) * max(card.scratch_align, 1)


def block_of(card: LaunchCard, declared: tuple[int, int, int]) -> tuple[int, int, int]:
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
