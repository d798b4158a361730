"""Order of cases in one process: shuffled, so that drift does not always meet the same case."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


def shuffled(items: Sequence[Item], seed: int, process: int) -> list[Item]:
    """Return the items in an order that depends on the run's seed and the process."""
    order = list(items)
    Random(f"{seed}/{process}").shuffle(order)
    return order
