"""Share of the cases: the part of a run that one of several equal GPUs measures."""

import re
from collections import Counter
from collections.abc import Sequence

from prism_bench.errors import UsageError
from prism_bench.spec.case import Case


def share(cases: Sequence[Case], part: str) -> list[Case]:
    """Return the cases of the share that `part` names: "2/4" is the second of four.

    A kernel stays whole, with its variants. The kernels, those with most cases first, then by name, go one by one to
    the share that has the fewest cases so far (Graham 1969), so that the same cases always make the same shares. A
    UsageError names what a part may be, or how many kernels there are where there are too few.
    """
    number, count = _parsed(part)
    sizes = Counter(case.spec.name for case in cases)
    if number > len(sizes):
        raise UsageError(f"--part {part}: no kernel is left for it; {len(sizes)} chosen kernels make as many parts")
    loads, chosen = [0] * min(count, len(sizes)), set[str]()
    for kernel in sorted(sizes, key=lambda name: (-sizes[name], name)):
        lightest = loads.index(min(loads))
        loads[lightest] += sizes[kernel]
        chosen |= {kernel} if lightest == number - 1 else set()
    return [case for case in cases if case.spec.name in chosen]


def _parsed(part: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", part)
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise UsageError(f"--part {part}: it is I/N with I from 1 to N, such as 1/4 for the first of four parts")
    return number, count
