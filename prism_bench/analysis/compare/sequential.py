"""Sequential design for undecided cases: when the processes are judged, and which are measured again.

Each look judges every case at its number of processes, and all p-values are multiplied by the number of looks that
there may be (Bonferroni over the looks). At whichever look a case was stopped, its product is at least the smallest of
all of them, which is a p-value; so the control of false discoveries over the suite holds for the whole procedure. The
interval behind "same" is as sure over all looks as a single one's.
"""

from prism_bench.analysis.compare.verdict import Judgement

START, MOST = 5, 15  # pairs of processes


def looks_of(start: int, most: int) -> tuple[int, ...]:
    """Return after how many pairs of processes the cases are judged: each time half as many again, at least two."""
    looks = [start]
    while looks[-1] < most:
        looks.append(min(most, looks[-1] + max(2, looks[-1] // 2)))
    return tuple(looks)


def following(judgement: Judgement) -> bool:
    """Return whether more processes may decide the case."""
    return judgement.verdict == "inconclusive"
