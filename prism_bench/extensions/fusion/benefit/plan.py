"""What a stage of fusion must move and set aside, from its host plan alone, without device or emulator."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Array, Chain, InOut, Launch, Zero


@dataclass(frozen=True)
class Planned:
    """One stage by its plan: `bytes` are the compulsory ones of every launch added up, `least` those of the whole.

    A launch reads each array that it is given once, or writes it once. One that is given nothing new to write works in
    place: what it was handed, the smallest of it at least, is read and written. Launches in a row that are given the
    same are one step (a product and the sum of its parts): together they read and write what others know once. Scratch
    counts where one launch hands it on to another (`temporaries`, which take `temporary_bytes`); the rest is a launch's
    own (`workspace_bytes`).
    """

    launches: int
    bytes: int
    least: int
    temporaries: tuple[str, ...]
    temporary_bytes: int
    workspace_bytes: int


def planned(case: Case, chain: Chain, device: Device) -> Planned:
    """Return the stage `case` of the chain, as `device` would be given it."""
    steps = [step for step in case.plan.steps(device) if isinstance(step, Zero) or not step.is_empty]
    launches = sum(isinstance(step, Launch) for step in steps)
    named = [_named(case, step) for step in steps]
    uses = Counter(name for names in named for name in names)
    scratch = [array.name for array in case.spec.arrays if array.scratch and uses[array.name]]
    kept = tuple(name for name in scratch if name in chain.between and uses[name] > 1)
    own = [name for name in scratch if name not in kept]
    total = case.sizes.bytes_moved if launches == len(steps) == 1 else sum(_moved(case, named, own, uses))
    return Planned(launches, total, case.sizes.bytes_moved, kept, _size(case, kept), _size(case, own))


def _size(case: Case, names: Iterable[str]) -> int:
    return sum(case.sizes.nbytes(name) for name in names)


def _named(case: Case, step: Launch | Zero) -> tuple[str, ...]:
    """Return the arrays that a step is given, each once."""
    if isinstance(step, Zero):
        return (step.name,)
    names = step.arguments or tuple(argument.name for argument in case.spec.arguments)
    return tuple(dict.fromkeys(name for name in names if isinstance(case.spec.argument(name), Array)))


def _moved(case: Case, named: Sequence[tuple[str, ...]], own: Sequence[str], uses: Mapping[str, int]) -> Iterator[int]:
    """Yield the bytes of each step."""
    written: set[str] = set()
    arrays = {array.name: array for array in case.spec.arrays}
    for names, alike in groupby(named):
        given, count = [name for name in names if name not in own], len(list(alike))
        handed = [name for name in given if not arrays[name].reads]
        both = [name for name in given if isinstance(arrays[name], InOut)]
        both += [name for name in handed if arrays[name].scratch and uses[name] == count > 1]
        if not both and handed and written.issuperset(handed):
            both.append(min(handed, key=case.sizes.nbytes))
        written.update(handed)
        yield _size(case, (*given, *both))
