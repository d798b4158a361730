"""Which stages run beside one another: lanes, and the points where one lane waits for another."""

from collections.abc import Sequence
from dataclasses import dataclass

from prism_bench.extensions.pipelines.pipeline import Placed, place_of


@dataclass(frozen=True)
class Lane:
    """Where a stage runs: its lane's `number`, and the positions of the stages of other lanes that it waits for."""

    number: int
    after: tuple[int, ...]


def lanes(stages: Sequence[Placed]) -> tuple[Lane, ...]:
    """A lane for every stage, in their order.

    A stage goes on in the lane of the first stage that feeds it, unless another stage went on there already; then, and
    where nothing feeds it, it opens a lane of its own. Lane 0 is the first stage's.
    """
    found, ends = [], []  # `ends`: by lane the stage that was last on it
    for position, one in enumerate(stages):
        before = _feeding(one, stages[:position])
        number = next((found[b].number for b in before if ends[found[b].number] == b), len(ends))
        if number == len(ends):
            ends.append(position)
        ends[number] = position
        found.append(Lane(number, tuple(b for b in before if found[b].number != number)))
    return tuple(found)


def _feeding(one, earlier):
    """Positions of the stages whose outputs the stage reads; a shared input is nobody's work."""
    fed = [place_of(word) for word in one.stage.feeds.values()]
    return [
        position
        for position, other in enumerate(earlier)
        if any(stage == other.stage.name and _writes(other, argument) for stage, argument in fed)
    ]


def _writes(one, argument):
    return one.case.spec.argument(argument).writes
