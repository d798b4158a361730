"""Noise floor: by how much a build differs from itself, measured A/A, so that no such difference is called a change.

They are kept in `reports/noise/<machine>.json`, case by case, so that measuring a few again leaves the others alone:

    schema, machine, device, backend     where the noise was measured
    protocol                             version of the measuring protocol
    cases   {name: {metric: values}}     with the fields of `noise.Floor`
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, cast

from prism_bench.analysis.compare.comparable import device_of, require_comparable
from prism_bench.analysis.compare.estimate import Spread, pooled, smallest_change
from prism_bench.analysis.compare.verdict import CHANGED, RULES, Pair, VerdictRules, judged, pair_of
from prism_bench.analysis.rivals import clock_of
from prism_bench.errors import ResultsError
from prism_bench.io.documents import as_kind
from prism_bench.io.files import Schema, four_digits, path_part
from prism_bench.measure.limits import valid
from prism_bench.record.run_record import RunRecord

REPAIRINGS = 20


@dataclass(frozen=True)
class Floor:
    """Noise of one metric of one case.

    `between` and `within` are relative standard deviations of a process's median: what processes differ by, and what
    their own samples leave open; `cycles_between` and `cycles_within` are the same in cycles of the SM clock.
    `processes` were measured on each side. `smallest_change` is what that number a side can distinguish from none. The
    processes were dealt anew into two sides `repaired` times; `false_verdicts` of those were called slower or faster,
    without the help of this noise floor.
    """

    seconds: float
    between: float
    within: float
    freedom: int
    processes: int
    smallest_change: float
    false_verdicts: int
    repaired: int
    created: str
    commit: str | None = None
    cycles_between: float | None = None
    cycles_within: float | None = None

    @property
    def spread(self) -> Spread:
        """The spread that an estimate weighs in."""
        return Spread(self.between**2 + self.within**2, self.freedom, self.within**2)

    @property
    def spread_in_cycles(self) -> Spread | None:
        """The same of the process's median in cycles; None where samples carried no clock."""
        if self.cycles_between is None or self.cycles_within is None:
            return None
        return Spread(self.cycles_between**2 + self.cycles_within**2, self.freedom, self.cycles_within**2)


@dataclass(frozen=True)
class Noise:
    """Noise floors of one machine by case and metric."""

    machine: str
    device: str
    backend: str
    protocol: int | None
    floors: Mapping[tuple[str, str], Floor] = field(default_factory=dict[tuple[str, str], Floor])

    def spread(self, case: str, metric: str) -> Spread | None:
        """Return the known spread of the case's metric, or None."""
        floor = self.floors.get((case, metric))
        return floor.spread if floor else None

    def spread_in_cycles(self, case: str, metric: str) -> Spread | None:
        """Return the known spread of the case's metric in cycles of the SM clock, or None."""
        floor = self.floors.get((case, metric))
        return floor.spread_in_cycles if floor else None

    def misfit(self, record: RunRecord) -> str | None:
        """Return why this noise does not apply to the record's times; None where it does."""
        return self.misfit_of(device_of(record), record.backend, record.protocol.get("version"))

    def misfit_of(self, device: str, backend: str, protocol: int | None) -> str | None:
        """Return why this noise does not apply to times of that device, backend and protocol; None where it does."""
        for word, own, other in (
            ("device", self.device, device),
            ("backend", self.backend, backend),
            ("protocol", self.protocol, protocol),
        ):
            if own != other:
                return f"the stored noise floor is of {word} {own}, not {other}: it is not used"
        return None

    @property
    def false_share(self) -> float | None:
        """The share of A/A verdicts that called a change; None where there were none."""
        verdicts = sum(floor.repaired for floor in self.floors.values())
        return sum(floor.false_verdicts for floor in self.floors.values()) / verdicts if verdicts else None


def noise_of(a: RunRecord, b: RunRecord, rules: VerdictRules = RULES, seed: int = 0) -> Noise:
    """Return the noise floors of two interleaved records of one build, for cases timed validly on both sides."""
    require_comparable(a, b, ("A", "B"))
    sides = {key: pair for key, pair in _measured(a, b).items() if len(pair.a.logs) > 1 and len(pair.b.logs) > 1}
    false = _false_verdicts(sides, rules, seed)
    floors = {key: _floor(pair, false[key], a) for key, pair in sides.items()}
    return Noise(str(a.machine["id"]), device_of(a), a.backend, a.protocol.get("version"), floors)


def _measured(a: RunRecord, b: RunRecord) -> dict[tuple[str, str], Pair]:
    found: dict[tuple[str, str], Pair] = {}
    for case in a.cases:
        other = b.case(case.name)
        if other is None or "ok" not in (case.status, other.status) or not (case.measurements and other.measurements):
            continue
        for metric in {"cold_time", "hot_time", clock_of(case)}:
            one, two = valid(case, metric), valid(other, metric)
            if one and two and one.samples and two.samples:
                found[case.name, metric] = pair_of(one, two)
    return found


def _floor(pair: Pair, false: int, record: RunRecord) -> Floor:
    spread, count = pooled(pair.a, pair.b), min(len(pair.a.logs), len(pair.b.logs))
    in_cycles = pooled(*pair.cycles) if pair.cycles else None
    return Floor(
        seconds=pair.a.typical,
        between=spread.between**0.5,
        within=min(spread.within, spread.variance) ** 0.5,
        freedom=int(spread.freedom),
        processes=count,
        smallest_change=smallest_change(spread, count, count),
        false_verdicts=false,
        repaired=REPAIRINGS,
        created=record.created,
        commit=record.commit,
        cycles_between=in_cycles.between**0.5 if in_cycles else None,
        cycles_within=min(in_cycles.within, in_cycles.variance) ** 0.5 if in_cycles else None,
    )


def _false_verdicts(
    sides: Mapping[tuple[str, str], Pair], rules: VerdictRules, seed: int
) -> dict[tuple[str, str], int]:
    """Return by case and metric how often processes of one build, dealt anew into two sides, were called different.

    Each metric is judged as one suite, as a comparison does. Dealt sides share processes from one time to the next, so
    that twenty of them show less than twenty measurements would.
    """
    false = dict.fromkeys(sides, 0)
    for metric in {metric for _, metric in sides}:
        suite = {key: pair for key, pair in sides.items() if key[1] == metric}
        for turn in range(REPAIRINGS):
            dealt = [_dealt(pair, Random(f"{seed}/{turn}")) for pair in suite.values()]
            for key, judgement in zip(suite, judged(dealt, rules), strict=True):
                false[key] += judgement.verdict in CHANGED
    return false


def _dealt(pair: Pair, rng: Random) -> Pair:
    """Return the pair's processes, shuffled into two sides as large as before."""
    order = list(range(len(pair.a.logs) + len(pair.b.logs)))
    rng.shuffle(order)
    first, second = order[: len(pair.a.logs)], order[len(pair.a.logs) :]
    whole = pair.a + pair.b
    in_cycles = pair.cycles[0] + pair.cycles[1] if pair.cycles else None
    return Pair(
        whole.only(first), whole.only(second), (in_cycles.only(first), in_cycles.only(second)) if in_cycles else None
    )


SCHEMA = Schema("a noise floor", 1, "prism-bench noise")
DEFAULT_NOISE = Path("reports/noise")
_WHOSE = {"machine": str, "device": str, "backend": str, "protocol": int, "cases": dict}


def merged_noise(old: Noise | None, new: Noise) -> Noise:
    """Return the old noise floors with the new ones; those of another device, backend or protocol are dropped."""
    same = old and (old.device, old.backend, old.protocol) == (new.device, new.backend, new.protocol)
    return replace(new, floors={**(old.floors if old and same else {}), **new.floors})


def path_for(machine: str, root: Path = DEFAULT_NOISE) -> Path:
    """Return the path of the noise of the machine of that id."""
    return root / f"{path_part(machine)}.json"


def write_noise(noise: Noise, path: Path) -> Path:
    """Keep the noise floors at `path`, whole or not at all; return the path."""
    cases: dict[str, dict[str, object]] = {}
    for (case, metric), floor in sorted(noise.floors.items()):
        cases.setdefault(case, {})[metric] = dict(sorted(four_digits(asdict(floor)).items()))
    return SCHEMA.write(path, {**{key: getattr(noise, key) for key in _WHOSE if key != "cases"}, "cases": cases})


def read_noise(path: Path) -> Noise | None:
    """Return the noise floors kept at `path`, None without such a file; a ResultsError names what is damaged."""
    data = SCHEMA.read(path)
    return None if data is None else _decode(data, path)


def _decode(data: Mapping[str, Any], path: Path) -> Noise:
    for key, kind in _WHOSE.items():
        if not isinstance(data.get(key), kind):
            raise ResultsError(f"{path}: '{key}' is {data.get(key)!r:.40}, not a {kind.__name__}")
    floors: dict[tuple[str, str], Floor] = {}
    for case, metrics in data["cases"].items():
        if not isinstance(metrics, dict):
            raise ResultsError(f"{path}: {case}: not a table of metrics")
        for metric, plain in cast("dict[str, object]", metrics).items():
            floors[case, metric] = _decoded_floor(plain, f"{path}: {case} {metric}")
    return Noise(data["machine"], data["device"], data["backend"], data["protocol"], floors)


def _decoded_floor(plain: object, where: str) -> Floor:
    try:
        floor: Floor = as_kind(plain, Floor)
        unknown = set(cast("dict[str, object]", plain)) - set(Floor.__dataclass_fields__)
    except ValueError as error:
        raise ResultsError(f"{where}: damaged ({error})") from error
    if unknown:
        raise ResultsError(f"{where}: damaged (unknown fields: {', '.join(sorted(unknown))})")
    in_cycles = floor.cycles_between or 0.0, floor.cycles_within or 0.0
    if min(floor.seconds, floor.between, floor.within, floor.freedom, floor.processes, *in_cycles) < 0:
        raise ResultsError(f"{where}: a negative spread or count")
    return floor


def stored_noise(machine: str, root: Path = DEFAULT_NOISE) -> Noise | None:
    """Return the noise kept for the machine of that id, or None."""
    return read_noise(path_for(machine, root))


def keep_noise(noise: Noise, root: Path = DEFAULT_NOISE) -> Path:
    """Put the noise floors among those kept for their machine; return the path."""
    path = path_for(noise.machine, root)
    return write_noise(merged_noise(read_noise(path), noise), path)
