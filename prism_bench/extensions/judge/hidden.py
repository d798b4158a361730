"""Sizes that nobody knows before a judgement: drawn within what the task's own workloads span."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import le
from time import monotonic

import numpy as np

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.emulator.isolation import own_children
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.run.verification import passed, verify
from prism_bench.spec.case import Case, Device
from prism_bench.spec.inputs import ONE_BY_ONE, InputArray
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import Workload

HIDDEN = "hidden"  # label of a case whose size was drawn
# A kernel that has inputs of a secret of 32 bits could try all within a launch; 53 are what every reader of JSON keeps.
SECRET_BITS = 53
_TRIES = 60  # draws; a task's rules refuse some
_MORE, _AT_ONCE, _MORE_SECONDS = 20, 8, 10.0  # inputs with which a size is tried where a submission was wrong


def drawn_secret() -> int:
    """Return a secret that nobody knows, from which a judgement draws seeds and sizes."""
    return random.SystemRandom().getrandbits(SECRET_BITS)


def hidden_cases(spec: KernelSpec, known: Sequence[Case], secret: int, count: int = 2) -> list[Case]:
    """Return up to `count` cases with sizes that none of `known` has, which take no more memory or work than they do.

    An axis gets a whole number between the smallest and the largest that `known` has of it, 0 aside: a multiple of what
    divides all of those, and a power of two where they are. Rules of the spec hold; axes that never vary stay.
    """
    public = {case.workload for case in known}
    bases = [case for case in known if case.golden is None and case.edge is None and case.sizes.allocated_bytes]
    found: dict[Workload, Case] = {}
    rng = random.Random(secret)
    most = [max(costs) for costs in zip(*map(_cost, known), strict=True)]
    for _ in range(_TRIES if bases else 0):
        workload = Workload(**dict(_drawn(rng.choice(bases).workload, bases, rng)))
        if workload in public or workload in found:
            continue
        try:
            case = Case(spec, workload, HIDDEN)
            _ = case.plan.steps(Device()), case.inputs(), case.plan.require_default(Device())
            if case.plan.requirement is None and all(map(le, _cost(case), most)):
                found[workload] = case
        except (PrismBenchError, ValueError, ArithmeticError):  # no size of this task
            continue
        if len(found) == count:
            break
    return list(found.values())


def is_no_size(task: KernelSpec, case: Case, seeds: Sequence[int]) -> bool:
    """Return whether the task's own kernel fails at a size that was drawn: then it is none of the task.

    It is tried with further inputs, too, as long as that takes seconds: where some of them are beyond the tolerance,
    another right kernel may miss it with inputs that this one passes.
    """
    rng, end = random.Random(f"more than {list(seeds)}"), monotonic() + _MORE_SECONDS
    try:
        own, backend = Case(task, case.workload, case.label), EmulatorBackend(isolate=True)
        with own_children():
            for tried in (seeds, *([rng.getrandbits(31) for _ in range(_AT_ONCE)] for _ in range(_MORE))):
                if not passed(verify(backend, own, tried)):
                    return True
                if monotonic() > end:
                    break
    except BackendUnavailable:
        return False
    except PrismBenchError:
        return True
    return False


def changed_inputs(case: Case, inputs: dict[str, InputArray], secret: int) -> dict[str, InputArray] | None:
    """Return inputs of which one element, at a random place, has the value of another one of its array.

    None where no input is free to change: only those whose values are drawn independently of each other are.
    """
    rng = random.Random(secret)
    free = [
        one.name for one in case.spec.inputs
        if case.golden is None and not case.edge and one.fill.runs == ONE_BY_ONE and inputs[one.name].block.size > 1
    ]  # fmt: skip
    rng.shuffle(free)
    for name in free:
        block = inputs[name].block.copy()
        place = rng.randrange(block.size)
        others = np.flatnonzero(block != block[place])
        if others.size:
            block[place] = block[others[rng.randrange(others.size)]]
            return {**inputs, name: replace(inputs[name], block=block)}
    return None


def _drawn(base: Workload, among: Sequence[Case], rng: random.Random) -> Iterator[tuple[str, object]]:
    for axis, value in base.items():
        values = {case.workload.get(axis) for case in among} - {0}
        whole = sorted(one for one in values if type(one) is int and one > 0)
        if type(value) is not int or len(whole) < 2 or len(whole) < len(values):
            yield axis, value
        else:
            yield axis, _number(whole, rng)


def _number(known: Sequence[int], rng: random.Random) -> int:
    """Return a number between the first and the last of `known`, of their form."""
    if all(one & (one - 1) == 0 for one in known):
        return 1 << rng.randint(known[0].bit_length() - 1, known[-1].bit_length() - 1)
    step = math.gcd(*known)
    return step * rng.randint(known[0] // step, known[-1] // step)


def _cost(case: Case) -> tuple[int, int]:
    return case.sizes.allocated_bytes, case.sizes.flops or 0
