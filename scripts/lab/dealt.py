"""A/A pairs of one build: its processes, dealt anew into two sides and judged as a comparison judges them.

Dealt sides share processes from one pair to the next, so that twenty pairs say less than twenty measurements would.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from prism_bench.analysis.compare.estimate import Medians, cycles, medians, pooled
from prism_bench.analysis.compare.noise import control_of
from prism_bench.analysis.compare.verdict import CHANGED, RULES, VERDICTS, MachineShift, Pair, judged
from prism_bench.analysis.peers import clock_of
from prism_bench.record.run_record import RunRecord
from prism_bench.units import count_text

SIDE = 5  # processes a side, at most
FLOORS = ("of other processes", "of the pair's own")


def groups_of(a: RunRecord, b: RunRecord) -> dict[str, tuple[Medians, Medians | None]]:
    """All processes of both records by case, in seconds and in cycles, of every case that has valid times in both."""
    found: dict[str, tuple[Medians, Medians | None]] = {}
    for case in a.cases:
        other = b.case(case.name)
        if other is None or not case.measurements:
            continue
        both = [one.measurement(clock_of(case)) for one in (case, other)]
        valid = [one for one in both if one and one.valid and one.samples]
        if len(valid) < len(both):
            continue
        first, second = map(cycles, valid)
        whole = medians([*valid[0].processes, *valid[1].processes])
        found[case.name] = whole, first + second if first and second else None
    return found


def dealt_rows(a: RunRecord, b: RunRecord, pairs: int, seed: int) -> Iterator[dict[str, str]]:
    """Yield pairs of the whole catalogue, each with the noise floor of the processes left over, and without."""
    groups = groups_of(a, b)
    for number in range(1, pairs + 1):
        for floor in FLOORS:
            yield _row(number, _dealt(groups, Random(f"{seed}/{number}"), floor == FLOORS[0]), floor)


def _dealt(groups: Mapping[str, tuple[Medians, Medians | None]], rng: Random, floors: bool) -> dict[str, Pair]:
    """Deal two sides of the processes; cases of as many processes are dealt alike, since a process runs all of them."""
    orders: dict[int, list[int]] = {}
    found = {}
    for name, (seconds, clocked) in groups.items():
        count = len(seconds.logs)
        order = orders.setdefault(count, rng.sample(range(count), count))
        side = min(SIDE, (count - 3) // 2) if floors and count >= 7 else min(SIDE, count // 2)
        first, second, rest = order[:side], order[side : 2 * side], order[2 * side :]
        is_known = floors and len(rest) > 2
        known = pooled(seconds.only(rest)) if is_known else None
        in_cycles = (clocked.only(first), clocked.only(second)) if clocked else None
        known_cycles = pooled(clocked.only(rest)) if clocked and is_known else None
        found[name] = Pair(seconds.only(first), seconds.only(second), in_cycles, known, known_cycles)
    return found


def _row(number: int, pairs: Mapping[str, Pair], floor: str) -> dict[str, str]:
    """Return the row of one pair: how many cases had which verdict as if their code had changed.

    Also how many of them stand out when all of them, whose code is identical, are the control.
    """
    found = Counter(one.verdict for one in judged(list(pairs.values())))
    changed = sum(found[word] for word in CHANGED)
    side = max((len(pair.a.logs) for pair in pairs.values()), default=0)
    control = control_of(pairs)
    shifts = [control.fit.at(pair.a.typical) if control.used else MachineShift() for pair in pairs.values()]
    out = sum(one.verdict in CHANGED for one in judged(list(pairs.values()), RULES, control.widening, shifts))
    return {
        "pair": str(number),
        "processes": str(side),
        "floor": floor,
        "cases": str(len(pairs)),
        **{word: str(found[word]) for word in VERDICTS},
        "changed_share": f"{changed / len(pairs):.4f}" if pairs else "",
        "standing_out": str(out),
    }


def summary(rows: Sequence[Mapping[str, str]], floor: str) -> str:
    """Return the counts of the pairs with that noise floor."""
    own = [row for row in rows if row["floor"] == floor]
    false = [int(row["slower"]) + int(row["faster"]) for row in own]
    cases, out = (sum(int(row[key]) for row in own) for key in ("cases", "standing_out"))
    share = f" ({sum(false) / cases:.2%}), in {count_text(sum(map(bool, false)), 'pair')}" if cases else ""
    return (
        f"same build, noise floor {floor}: {sum(false)} of {count_text(cases, 'verdict')} in "
        f"{count_text(len(own), 'pair')} called a change{share}; as a control {out} stand out"
    )
