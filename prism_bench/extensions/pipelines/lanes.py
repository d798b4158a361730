"""Lanes of a pipeline: which stages run side by side, and where one lane waits for another."""

from collections.abc import Sequence
from dataclasses import dataclass

from prism_bench.extensions.pipelines.pipeline import Placed, place_of


@dataclass(frozen=True)
class Lane:
    """The lane of a stage: its `number`, and the positions of the stages of other lanes that it waits for."""

    number: int
    after: tuple[int, ...]


def lanes(stages: Sequence[Placed]) -> tuple[Lane, ...]:
    """Return a lane for every stage, in their order.

    A stage continues the lane of the first stage that feeds it, unless another stage continues it already; then, and
    where nothing feeds it, it opens a new lane. Lane 0 is the first stage's.
    """
    found: list[Lane] = []
    ends: list[int] = []  # by lane the stage that was last on it
    for position, one in enumerate(stages):
        before = _feeding(one, stages[:position])
        number = next((found[b].number for b in before if ends[found[b].number] == b), len(ends))
        if number == len(ends):
            ends.append(position)
        ends[number] = position
        found.append(Lane(number, tuple(b for b in before if found[b].number != number)))
    return tuple(found)


def _feeding(one: Placed, earlier: Sequence[Placed]) -> list[int]:
    """Return the positions of the stages whose outputs the stage reads; a shared input is no output."""
    fed = [place_of(word) for word in one.stage.feeds.values()]
    return [
        position
        for position, other in enumerate(earlier)
        if any(stage == other.stage.name and name in _written(other) for stage, name in fed)
    ]


def _written(one: Placed) -> set[str]:
    return {array.name for array in one.case.spec.arrays if array.writes}
