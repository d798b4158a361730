"""Input regimes: values of edges in addition to the usual values, as far as the arguments' domains allow.

`REGIMES` has every regime with the values that it draws. The domain and the type of an argument determine its regimes,
and `regime_edges` adds them at the edges of a spec that reach different code.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from prism_bench.spec.arguments import Array, FilledArray
from prism_bench.spec.case import Case, Device
from prism_bench.spec.dtypes import PRECISIONS, Precision, precision_of
from prism_bench.spec.inputs import Domain, Fill
from prism_bench.spec.kernel import KernelSpec, Launch
from prism_bench.spec.workload import Edge, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

_DISTINCT = 3  # values among which ties are drawn
_FACTOR = {
    "float16": 2.0**8,
    "float32": 2.0**40,
    "float64": 2.0**40,
    "bfloat16": 2.0**40,
    "float8_e4m3fn": 2.0**4,
    "float8_e5m2": 2.0**8,
}  # from usual values to tiny and to huge values, of which two can be multiplied
_MOST_COST = 1 << 18  # bytes and operations of an edge at which regimes are added
_ROTATED = 2  # regimes at every further path through the code
ALONE = ("zeros", "infinity", "nan")  # regimes that each argument also has while the others have usual values


@dataclass(frozen=True)
class Usual:
    """Usual values, which a regime changes: `values` as the fill draws them, in float64, with the bounds as numbers."""

    values: Floats
    low: float
    high: float
    most: float
    smallest: float
    normal: float
    rng: np.random.Generator

    @property
    def signed(self) -> bool:
        """Return whether negative values may be drawn."""
        return self.low < 0

    @property
    def place(self) -> int:
        """Return a random index of a value, a new one at each access."""
        return int(self.rng.integers(self.values.size))

    def signs(self) -> Floats:
        """Return a random sign for every value if the domain has negative ones, else 1."""
        return self.rng.choice([-1.0, 1.0], self.values.size) if self.signed else np.ones(self.values.size)

    def with_one(self, value: float) -> Floats:
        """Return the usual values, with `value` at a random place."""
        values = self.values.copy()
        values[self.place] = value
        return values


@dataclass(frozen=True)
class Regime:
    """Kind of values: `draw` makes them from usual values, `suits` decides for which domains and types."""

    name: str
    draw: Callable[[Usual], Floats]
    suits: Callable[[Domain, Precision | None], bool]


def _one_nonzero(usual: Usual) -> Floats:
    values, place = np.zeros(usual.values.size), usual.place
    values[place] = usual.values[place] or min(1.0, usual.high)
    return values


def _huge(usual: Usual) -> Floats:
    peak = np.abs(usual.values[np.isfinite(usual.values)]).max(initial=0.0)
    # In this order of operations a subnormal peak makes no infinity.
    return usual.values / peak * usual.most if peak > 0 else usual.values


def _subnormal(usual: Usual) -> Floats:
    """Draw from the whole range: sums of terms that are all close to 0 would test nothing."""
    return usual.signs() * usual.rng.uniform(usual.smallest, usual.normal, usual.values.size)


def _mixed_signs(usual: Usual) -> Floats:
    values = np.abs(usual.values)
    values[1::2] = -values[: values.size - 1 : 2]
    return values


def _is_float(domain: Domain, precision: Precision | None) -> bool:
    return precision is not None and not domain.whole


def _from_zero(domain: Domain, precision: Precision | None) -> bool:
    """Return whether the domain begins at 0, included or not, or is unbounded below, and has no upper end."""
    return _is_float(domain, precision) and domain.low in (0.0, -np.inf) and domain.high == np.inf


def _has_zero(domain: Domain, precision: Precision | None) -> bool:
    low, high = (0.0 if isinstance(bound, str) else bound for bound in (domain.low, domain.high))
    return low <= 0.0 <= high and not (domain.open_low and low == 0.0)


def _is_signed(domain: Domain, precision: Precision | None) -> bool:
    return _is_float(domain, precision) and domain.low == -np.inf


def _has_infinity(domain: Domain, precision: Precision | None) -> bool:
    return precision is not None and precision.has_infinity and not domain.finite


REGIMES = (
    Regime("zeros", lambda usual: np.zeros(usual.values.size), _has_zero),
    Regime("one nonzero", _one_nonzero, _has_zero),
    Regime("all equal", lambda usual: np.full(usual.values.size, usual.values[usual.place]), lambda d, p: True),
    Regime(
        "ties",
        lambda usual: usual.rng.choice(usual.values[:: -(-usual.values.size // _DISTINCT)], usual.values.size),
        lambda d, p: True,
    ),
    Regime(
        "bounds",
        lambda usual: usual.rng.choice([usual.low, usual.high], usual.values.size),
        lambda d, p: d.low != -np.inf and d.high != np.inf,
    ),
    Regime("tiny", lambda usual: usual.values / usual.most, _from_zero),
    Regime("huge", _huge, _from_zero),
    Regime("subnormal", _subnormal, _from_zero),
    Regime("wide", lambda u: u.signs() * u.most ** u.rng.uniform(-1, 1, u.values.size), _from_zero),
    Regime("mixed signs", _mixed_signs, _is_signed),
    Regime("infinity", lambda usual: usual.with_one(np.inf), lambda d, p: _from_zero(d, p) and _has_infinity(d, p)),
    Regime(
        "minus infinity", lambda usual: usual.with_one(-np.inf), lambda d, p: _is_signed(d, p) and _has_infinity(d, p)
    ),
    Regime("nan", lambda usual: usual.with_one(np.nan), lambda d, p: _is_float(d, p) and not d.numbers),
)


def suited(array: Array, regime: Regime) -> bool:
    """Return whether the argument's domain contains the values of the regime."""
    domain = array.values
    return domain is not None and not domain.fixed and regime.suits(domain, precision_of(array.dtype))


def _fills(arrays: tuple[FilledArray, ...], regime: Regime) -> dict[str, Fill]:
    """Return the fills of the regime by argument."""
    return {
        array.name: Fill(partial(_drawn, array, regime), f"{regime.name} of {array.fill.meaning}", array.values)
        for array in arrays
        if suited(array, regime)
    }


def _drawn(array: FilledArray, regime: Regime, rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> Floats:
    """Draw `count` values of the regime."""
    values = np.asarray(array.fill.draw(rng, count, axes), "float64").reshape(-1)
    if count == 0:
        return values
    domain, precision = array.values or Domain(), precision_of(array.dtype)
    low, high = (float(axes[bound] if isinstance(bound, str) else bound) for bound in (domain.low, domain.high))
    limits = precision or PRECISIONS["float64"]
    smallest, normal = 2.0**limits.smallest, 2.0 ** (limits.smallest + limits.digits - 1)
    most = domain.most or (_FACTOR[precision.name] if precision else 1.0)
    return regime.draw(Usual(values, low, high - domain.whole, most, smallest, normal, rng=rng))


def regime_edges(spec: KernelSpec) -> list[Edge]:
    """Return edges with the regimes that suit the spec's inputs.

    One workload has all regimes, each workload that takes another path through the code has some.
    """
    filled = [(regime, fills) for regime in REGIMES if (fills := _fills(spec.inputs, regime))]
    workloads = _workloads(spec)
    if not filled or not workloads:
        return []
    edges = [_edge(regime.name, workloads[0], fills) for regime, fills in filled]
    for regime, fills in filled:
        if regime.name in ALONE and len(fills) > 1:
            edges += [_edge(f"{regime.name} in {name}", workloads[0], {name: fill}) for name, fill in fills.items()]
    for number, workload in enumerate(workloads[1:]):
        turn = [(number * _ROTATED + k) % len(filled) for k in range(min(_ROTATED, len(filled)))]
        edges += [_edge(filled[k][0].name, workload, filled[k][1]) for k in turn]
    return edges


def _edge(name: str, workload: Workload, fills: Mapping[str, Fill]) -> Edge:
    return Edge(name, workload, fills, regime=True)


def _workloads(spec: KernelSpec) -> list[Workload]:
    """Return the largest cheap edge for every different path through the code, as launches show it.

    Edges that every device runs come first, of these the cheap ones, of these the largest.
    """
    by_path: dict[tuple[object, ...], Case] = {}
    cases = [Case(spec, workload, "edge") for workload in spec.edges if not isinstance(workload, Edge)]
    for case in sorted(cases, key=_cost):
        path = _path(case)
        if path and (_cost(case) <= _MOST_COST or path not in by_path):
            by_path[path] = case

    def rank(case: Case) -> tuple[bool, bool, int]:
        is_expensive = _cost(case) > _MOST_COST
        return case.plan.requirement is not None, is_expensive, _cost(case) if is_expensive else -_cost(case)

    return [case.workload for case in sorted(by_path.values(), key=rank)]


def _cost(case: Case) -> int:
    return case.sizes.bytes_moved + (case.sizes.flops or 0)


def _path(case: Case) -> tuple[object, ...]:
    """Return the properties that distinguish paths through the code: entries, blocks, and grid extents above 1.

    It is empty if the launch raises: the edge itself reports that, and other kernels still get their regimes.
    """
    try:
        steps = case.plan.steps(Device())
    except Exception:  # a spec's own function may raise anything
        return ()
    launches = [step for step in steps if isinstance(step, Launch) and not step.is_empty]
    grids = [step.grid if isinstance(step.grid, tuple) else (step.grid,) for step in launches]
    return tuple(
        (step.entry, step.block, tuple(extent > 1 for extent in grid))
        for step, grid in zip(launches, grids, strict=True)
    )
