"""How often our trend names the cause of a step, in generated histories of records in which the cause is known.

Each history has a dozen kernels and a peer. What is planted happens at one run; at other runs, and partly at the same
one, things change that move nothing: commits, stopping criteria, a kernel's code, the driver, the GPU unit.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy

from lab.trends import APART, CLOCK, generated, wilson
from prism_bench.analysis.trend import steps
from prism_bench.record.store.history import History, history_of
from prism_bench.record.store.points import NUMBERS, WORDS, Facts, PointBlock, block

DETECTOR = "causes"
RUNS, KERNELS, UP = 60, 12, 1.06
NOISES = ("normal", "heavy tails", "outliers")
WITHIN = 1  # runs that a step may be off its place
_SEED, _FIRST = 20261123, datetime(2026, 1, 1, 3)
_SOFTWARE = {"nvrtc": "13.0", "driver": "570.1", "torch": "2.11", "cupy": "14.2"}


@dataclass(frozen=True)
class Plant:
    """What happens at the planted run, and the `expected` cause of the step of `subject` that follows.

    `first` is by what the first kernel (or the peer) becomes slower, `others` by what all others do. `code` names whose
    machine code changes: nobody's, the first kernel's or all; `software`, `protocol`, `unit`, `clock` what else does.
    `later` is planted APART runs after it.
    """

    expected: str
    first: float = UP
    others: float = 1.0
    code: str = "none"
    software: Mapping[str, str] = field(default_factory=dict)
    protocol: Mapping[str, object] = field(default_factory=dict)
    unit: bool = False
    clock: float = 1.0
    subject: str = "kernel"
    known: bool = True
    later: "Plant | None" = None


PLANTS = {
    "code": Plant("code", code="first"),
    "code, another unit": Plant("code", code="first", unit=True),
    "code, a slower unit": Plant("code", 1.12, 1.03, code="first", unit=True),
    "code, another criterion": Plant("code", code="first", protocol={"criteria": {"cold_time": 7}}),
    "unit": Plant("device", others=UP, unit=True),
    "unit, code that does not matter": Plant("device", others=UP, unit=True, code="first"),
    "driver": Plant("driver", others=UP, software={"driver": "580.2"}),
    "toolchain": Plant("toolchain", others=UP, code="all", software={"nvrtc": "13.2"}),
    "protocol": Plant("protocol", others=UP, protocol={"version": 2}),
    "clock": Plant("clock", 1.08, 1.08, clock=1 / 1.08),
    "library": Plant("library", subject="peer:torch", software={"torch": "2.12"}),
    "sources": Plant("sources", known=False),
    "nothing": Plant("unexplained"),
    "code, then driver": Plant("code", code="first", later=Plant("driver", others=UP, software={"driver": "580.2"})),
    "unit, then code": Plant("device", others=UP, unit=True, later=Plant("code", code="first")),
}


@dataclass(frozen=True)
class CauseCell:
    """One row of the table: so many `histories` with a noise and a plant."""

    noise: str
    plant: str
    histories: int


def cells(histories: int) -> Iterator[CauseCell]:
    """Yield every cell of the table."""
    return (CauseCell(noise, plant, histories) for noise in NOISES for plant in PLANTS)


def row(cell: CauseCell) -> dict[str, str | float | int | None]:
    """Return the cell's row: the share of histories in which every planted cause was named at its place."""
    rng = numpy.random.default_rng([_SEED, NOISES.index(cell.noise), list(PLANTS).index(cell.plant)])
    found = sum(named(cell, rng) for _ in range(cell.histories))
    names = ("share", "lower", "upper")
    numbers = dict(zip(names, (f"{n:.4f}" for n in wilson(found, cell.histories)), strict=True))
    return {
        "noise": cell.noise,
        "nights": RUNS,
        "detector": DETECTOR,
        "planted": cell.plant,
        "step": round(PLANTS[cell.plant].first - 1, 4),
        "series": cell.histories,
        **numbers,
    }


def named(cell: CauseCell, rng: numpy.random.Generator) -> bool:
    """Whether every planted cause is named at its place, in one more history."""
    place = int(rng.integers(20, RUNS - 20))
    events = {place: PLANTS[cell.plant]}
    if later := PLANTS[cell.plant].later:
        events[place + APART] = later
    found = [
        (step.key.subject, step.cause.kind, int(step.record.rpartition("/")[2].partition(".")[0]))
        for step in steps(history(cell.noise, events, rng))
        if step.key.case == "k0[n=1]"
    ]
    return all(
        any(
            (subject, kind) == (plant.subject, plant.expected) and abs(at - run) <= WITHIN
            for subject, kind, at in found
        )
        for run, plant in events.items()
    )


def history(noise: str, events: Mapping[int, Plant], rng: numpy.random.Generator) -> History:
    """Return a generated history with the planted events at their runs."""
    idle = {name: _elsewhere(events, rng) for name in ("driver", "unit", "criteria")}
    codes = [_elsewhere(events, rng) for _ in range(KERNELS)]
    rows = [_kernel(number, noise, events, codes[number], rng) for number in range(KERNELS)]
    changes = {run: plant.first if plant.subject != "kernel" else plant.others for run, plant in events.items()}
    values, _ = generated(noise, rng, changes, RUNS)
    rows.append(lambda run: _point("k0[n=1]", "peer:torch", "", 1e-3 * values[run], CLOCK))
    return history_of([_record(run, events, idle, [one(run) for one in rows]) for run in range(RUNS)])


def _elsewhere(events: Mapping[int, Plant], rng: numpy.random.Generator) -> int:
    """Return a run at which something changes that moves nothing, a few runs off the planted ones."""
    free = [run for run in range(5, RUNS - 5) if all(abs(run - event) > WITHIN + 1 for event in events)]
    return int(rng.choice(free))


def _record(run: int, events: Mapping[int, Plant], idle: Mapping[str, int], points: list[dict]) -> PointBlock:
    past = [plant for event, plant in events.items() if event <= run]
    software = _SOFTWARE | ({"driver": "570.9"} if run >= idle["driver"] else {})
    protocol: dict[str, object] = {"version": 1, "criteria": {"cold_time": int(run >= idle["criteria"])}}
    for plant in past:
        software, protocol = {**software, **plant.software}, {**protocol, **plant.protocol}
    unit = (run >= idle["unit"]) + sum(plant.unit for plant in past)
    facts = Facts(
        file=f"h200/{run:03d}.json.gz",
        machine="h200",
        backend="cuda",
        dirty=False,
        complete=True,
        created=(_FIRST + timedelta(days=run)).isoformat(),
        commit=f"{run:040x}",
        device=f"GPU-{unit}",
        software=software,
        protocol=protocol,
    )
    columns = {name: [point[name] for point in points] for name in (*WORDS, *NUMBERS)}
    return block(facts.file, "", facts, columns)


def _kernel(
    number: int, noise: str, events: Mapping[int, Plant], idle: int, rng: numpy.random.Generator
) -> Callable[[int], dict]:
    """Return the points of one kernel by run; the first one is that of which something is planted."""
    own = {run: not number and plant.subject == "kernel" for run, plant in events.items()}
    changes = {run: plant.first if own[run] else plant.others for run, plant in events.items()}
    values, _ = generated(noise, rng, changes, RUNS)
    level = 1e-4 * (1 + number)

    def point(run: int) -> dict:
        past = [plant for event, plant in events.items() if event <= run]
        changed = sum(plant.code == "all" or (plant.code == "first" and not number) for plant in past)
        known = all(plant.known for plant in events.values())
        clock = CLOCK * float(numpy.prod([plant.clock for plant in past]))
        code = f"c{changed}{run >= idle}" if known else ""
        return _point(f"k{number}[n=1]", "kernel", code, level * values[run], clock)

    return point


def _point(case: str, subject: str, code: str, value: float, clock: float) -> dict:
    return {
        "case": case,
        "metric": "cold_time",
        "subject": subject,
        "code": code,
        "build": "",
        "doubt": "",
        "board": "",
        "value": value,
        "clock": clock,
        "samples": 60,
        "throttled": 0,
    }
