"""What a stage of fusion must move and set aside, read off its host plan: no device and no emulator is asked."""

from collections import Counter
from dataclasses import dataclass
from itertools import groupby

from prism_bench.case import Case, Device
from prism_bench.kernel import Array, Chain, InOut, Launch, Zero


@dataclass(frozen=True)
class Planned:
    """One stage by its plan: `bytes` are the compulsory ones of every launch added up, `least` those of the whole.

    A launch reads each array that it is given once, or writes it once. Launches in a row that are given the same are
    one step (a product and the sum of its parts): together they read and write what others know once. Scratch counts
    where one launch hands it on to another (`temporaries`, which take `temporary_bytes`); the rest is a launch's own
    (`workspace_bytes`).
    """

    launches: int
    bytes: int
    least: int
    temporaries: tuple[str, ...]
    temporary_bytes: int
    workspace_bytes: int


def planned(case: Case, chain: Chain, device: Device) -> Planned:
    """The stage `case` of the chain, as `device` would be given it."""
    steps = [step for step in case.steps(device) if isinstance(step, Zero) or not step.is_empty]
    launches = sum(isinstance(step, Launch) for step in steps)
    named = [_named(case, step) for step in steps]
    uses = Counter(name for names in named for name in names)
    scratch = [array.name for array in case.spec.arrays if array.scratch and uses[array.name]]
    kept = tuple(name for name in scratch if name in chain.between and uses[name] > 1)
    own = [name for name in scratch if name not in kept]
    groups = [(names, len(list(alike))) for names, alike in groupby(named)]
    moved = sum(
        _moved(case, name) * (count if name in kept and uses[name] == count else 1)
        for names, count in groups for name in names if name not in own
    )  # fmt: skip
    size = lambda names: sum(case.nbytes(name) for name in names)  # noqa: E731
    total = case.bytes_moved if launches == len(steps) == 1 else moved
    return Planned(launches, total, case.bytes_moved, kept, size(kept), size(own))


def _named(case, step):
    """The arrays that a step is given, each once."""
    if isinstance(step, Zero):
        return (step.name,)
    names = step.arguments or tuple(argument.name for argument in case.spec.arguments)
    return tuple(dict.fromkeys(name for name in names if isinstance(case.spec.argument(name), Array)))


def _moved(case, name):
    return case.nbytes(name) * (2 if isinstance(case.spec.argument(name), InOut) else 1)
