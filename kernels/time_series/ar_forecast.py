"""Forecasts of many series by one AR(p) model: a thread per series keeps the last p values in registers.

DRAM and the FMA rate are close to each other here; nearly all of the inner loop is FFMA. The bottleneck is the access
pattern: the rows of a warp's 32 series are far apart in memory, and the same accesses without arithmetic take nearly as
long. Longer pieces of rows are better, so chunks of 64 steps. y[T+h] = c + sum of phi[i-1] y[T+h-i], lag 1 first;
beyond T the forecasts themselves. `each` has a model for every series, `serial` is for a few series of many steps:
chunks begin at once, by powers of the companion matrix. Registers limit the warps of `each`, since each thread holds a
model. `serial` is latency-bound: few threads have work.
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Scratch,
    Size,
    Variant,
    Workload,
    absolute,
    reduction,
)
from prism_bench.spec import AnyArray, Array, ArrayModule, Fill, Peer, Runs, as_drawn

from ..peers.poor_ways import TIME_LOOP

IN_REGISTERS, UNDERFLOW = 64, 2.0**-126  # of a sum: a product loses 2^-150, in units of gamma_p
GUIDE = (36.445779, 2.494969, 5.930700, 4.262145, 2.410816, 2.685697, 1.003711, 0.048630, 0.232367, 0.154308)
MOST_LOOPS = 16  # steps of a forecast


def stable(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> AnyArray:
    """Coefficients whose absolute values sum to 0.95: all roots lie outside the unit circle, forecasts stay bounded."""
    phi = rng.normal(size=count)
    return 0.95 * phi / np.abs(phi).sum()


def launch_of(own: bool) -> Callable[..., Any]:
    def launch(series: int, lags: int, horizon: int) -> Launch:
        flag = str(own).lower()
        entry = f"ar_forecast<{lags}, {flag}>" if lags <= IN_REGISTERS else f"ar_forecast_long<{flag}>"
        return Launch(grid=-(-series // 128) if horizon else 0, block=128, entry=entry)

    return launch


def launch_serial(series: int, lags: int, chunks: int) -> tuple[Launch, ...]:
    """The states at which chunks begin, then the chunks."""
    first = ("history", "phi", "states", "intercept", "length", "lags", "steps", "chunks")
    last = ("states", "phi", "forecast", "intercept", "steps", "chunks", "horizon")
    return (
        Launch(series if chunks else 0, 256, entry="ar_chunk_states", arguments=first),
        Launch((-(-chunks // 32), series), 32, entry=f"ar_chunks<{lags}>", arguments=last),
    )


def weighed(backward: AnyArray, window: AnyArray) -> AnyArray:
    """The sum over lags, of one model or of each series' own."""
    return backward @ window if backward.ndim == 1 else (backward.T * window).sum(axis=0)


def recursion(
    past: AnyArray, phi: AnyArray, intercept: float, horizon: int, xp: ArrayModule
) -> tuple[AnyArray, AnyArray]:
    """The forecasts as rows of time, with |c| + sum of |phi_i y_{t-i}|, the terms that each one adds."""
    lags = phi.shape[-1]
    values = xp.empty((lags + horizon, past.shape[0]))
    terms = xp.empty((horizon, past.shape[0]))
    values[:lags] = past[:, past.shape[1] - lags :].T
    backward = phi[..., ::-1].copy()
    for step in range(horizon):
        window = values[step : step + lags]
        values[lags + step] = intercept + weighed(backward, window)
        terms[step] = abs(intercept) + weighed(xp.abs(backward), xp.abs(window))
    return values[lags:], terms


def reference(history: AnyArray, phi: AnyArray, intercept: float, horizon: int, xp: ArrayModule) -> AnyArray:
    return recursion(history, phi, intercept, horizon, xp)[0].T


def growth(history: AnyArray, phi: AnyArray, intercept: float, horizon: int, xp: ArrayModule) -> AnyArray:
    """A bound on a forecast's rounding error in units of gamma_{p+1}: its own sum's, and what |phi| carries on."""
    terms = recursion(history, phi, intercept, horizon, xp)[1]
    lags = phi.shape[-1]
    bound = xp.zeros((lags + horizon, terms.shape[1]))
    backward = xp.abs(phi[..., ::-1])
    for step in range(horizon):
        bound[lags + step] = terms[step] + UNDERFLOW + weighed(backward, bound[step : step + lags])
    return xp.nan_to_num(bound[lags:].T, nan=0.0, posinf=0.0)


def filtered(phi: AnyArray, terms: AnyArray, past: AnyArray = None) -> AnyArray:
    """The recursion over rows of terms, by SciPy, on the host."""
    from scipy.signal import lfilter, lfiltic  # here: finding the catalogue needs no SciPy

    taps = np.concatenate(([1.0], -phi))
    if terms.size == 0:
        return terms
    if past is None:
        return lfilter([1.0], taps, terms, axis=1)
    start = np.stack([lfiltic([1.0], taps, row[::-1]) for row in past])
    return lfilter([1.0], taps, terms, axis=1, zi=start)[0]


def on_host(values: AnyArray, xp: ArrayModule) -> AnyArray:
    return values if xp is np else values.get()


def reference_serial(history: AnyArray, phi: AnyArray, intercept: float, horizon: int, xp: ArrayModule) -> AnyArray:
    past, phi = on_host(history, xp)[:, history.shape[1] - len(phi) :], on_host(phi, xp)
    return xp.asarray(filtered(phi, np.full((len(past), horizon), float(intercept)), past))


def growth_serial(history: AnyArray, phi: AnyArray, intercept: float, horizon: int, xp: ArrayModule) -> AnyArray:
    """As growth: each forecast's terms, and what |phi| carries on of the bounds before."""
    from scipy.signal import lfilter

    y = on_host(reference_serial(history, phi, intercept, horizon, xp), xp)
    phi = on_host(phi, xp)
    if y.size == 0:
        return xp.zeros(y.shape)
    values = np.abs(np.concatenate((on_host(history, xp)[:, history.shape[1] - len(phi) :], y), axis=1))
    terms = abs(intercept) + lfilter(np.concatenate(([0.0], np.abs(phi))), [1.0], values, axis=1)[:, len(phi) :]
    return xp.asarray(filtered(np.abs(phi), terms + UNDERFLOW))


def stable_each(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> AnyArray:
    phi = rng.normal(size=(count // axes["lags"], axes["lags"]))
    return (0.95 * phi / np.abs(phi).sum(axis=1, keepdims=True)).reshape(-1)


def torch_product(torch: ModuleType, history: AnyArray, phi: AnyArray, intercept: float, horizon: int) -> Any:
    """One product: a forecast is linear in the last values, by powers of the companion matrix.

    The last row and column of that matrix hold the intercept. Each round doubles the steps that the rows reach.
    """
    lags = len(phi)
    pad, device = torch.nn.functional.pad, phi.device
    first = torch.cat((phi, torch.full((1,), intercept, device=device)))
    shifts = pad(torch.eye(lags, device=device), (0, 1))[: lags - 1]
    step = torch.cat((first[None], shifts, pad(torch.ones((1, 1), device=device), (lags, 0))))
    rows = step[:1]
    while len(rows) < horizon:
        rows, step = torch.cat((rows, rows @ step)), step @ step
    weights = rows[:horizon, :lags].flip(1).T
    return torch.addmm(rows[:horizon, lags], history[:, history.shape[1] - lags :], weights)


def torch_loop(torch: ModuleType, history: AnyArray, phi: AnyArray, intercept: float, horizon: int) -> Any:
    if horizon > MOST_LOOPS:
        raise ValueError(f"a loop, which compiles for a minute, is timed for {MOST_LOOPS} steps at most")
    lags, length = len(phi), history.shape[1]
    values = torch.empty((history.shape[0], lags + horizon), device=history.device)
    values[:, :lags] = history[:, length - lags :]
    backward = phi.flip(0)
    for step in range(horizon):
        values[:, lags + step] = torch.mv(values[:, step : step + lags], backward) + intercept
    return values[:, lags:]


def with_nan(series: int, length: int) -> AnyArray:
    """A NaN among the last values of series 1, and one too old to matter in series 2."""
    history = np.random.default_rng(3).normal(size=(series, length))
    history[1, length - 2], history[2, 0] = np.nan, np.nan
    return history


def seasonal(length: int) -> AnyArray:
    at = np.arange(length)
    return 100 + 0.01 * at + 10 * np.sin(0.1 * at)


def arguments(phi: Array) -> tuple[Any, ...]:
    return (
        In("history", "series length"), phi, Out("forecast", "series horizon"), Scalar("intercept"), Size("series"),
        Size("length"), Size("lags"), Size("horizon"),
    )  # fmt: skip


MEANING = "normal, scaled to sum |phi| = 0.95"
PHI, STABLE_EACH = (
    In("phi", "lags", fill=Fill(stable, MEANING, as_drawn())),
    Fill(stable_each, MEANING, as_drawn(), runs=lambda axes: Runs(axes["lags"], axes["lags"])),
)
RULES = (Rule("1 <= lags <= length", lambda lags, length: 1 <= lags <= length),)
GUIDED = Golden(
    Workload(series=1, length=1000, lags=5, horizon=10, intercept=0.0),
    inputs={"history": seasonal, "phi": (0.5, -0.3, 0.2, -0.1, 0.05)},
    expected={"forecast": GUIDE},
    source="profiling guide: 100 + 0.01 i + 10 sin(0.1 i)",
    tolerance=absolute(2e-5),
)

spec = KernelSpec(
    entry="ar_forecast<5, false>",
    arguments=arguments(PHI),
    parameters={"intercept": 0.5},
    rules=RULES,
    launch=launch_of(own=False),
    reference=reference,
    tolerance=reduction(magnitude=growth, terms=lambda lags: (lags + 2) * 2.0**-24),
    peers={"torch": Peer(torch_loop, poor=TIME_LOOP), "torch_product": torch_product},
    looked_at={"cub": "its scans take associative operators: products of companion matrices, not of numbers"},
    flops=lambda series, lags, horizon: 2 * lags * horizon * series,
    bytes_moved=lambda series, lags, horizon: 4 * series * (lags + horizon) + 4 * lags,
    workloads={
        "S0": Workload(series=1, length=1000, lags=5, horizon=10),
        "S1": Workload(series=1 << 20, length=16, lags=16, horizon=64),
        "S2": Workload(series=1 << 22, length=32, lags=32, horizon=128),
    },
    edges=(
        Workload(series=7, length=9, lags=4, horizon=0),
        Workload(series=0, length=9, lags=4, horizon=3),
        Workload(series=1, length=1, lags=1, horizon=1),
        Workload(series=131, length=16, lags=16, horizon=65, intercept=0.0),
        Workload(series=257, length=40, lags=32, horizon=100),
        Workload(series=33, length=23, lags=20, horizon=44),
        Workload(series=65, length=50, lags=3, horizon=37),
        Workload(series=40, length=64, lags=64, horizon=129),
        Workload(series=37, length=100, lags=65, horizon=70),
        Workload(series=1, length=5, lags=5, horizon=10_000),
    ),
    golden=(
        GUIDED,
        Golden(
            Workload(series=3, length=12, lags=4, horizon=12),
            inputs={"history": with_nan, "phi": (0.4, 0.3, -0.1, 0.1)},
            expected={},
            source="a NaN among the last p values reaches every forecast, an older one none",
        ),
        Golden(
            Workload(series=2, length=3, lags=2, horizon=400),
            inputs={"history": 1.0, "phi": (0.0, 1.5)},
            expected={},
            source="roots inside the unit circle: values grow to 1e35, and rounding with them",
        ),
    ),
    budgets=(
        Budget("bandwidth_share", at_least=0.85, label="S1"),
        Budget("bandwidth_share", at_least=0.85, label="S2"),
    ),
    variants={
        "each": Variant(
            "a model for every series",
            arguments=arguments(In("phi", "series lags", fill=STABLE_EACH)),
            launch=launch_of(own=True),
            bytes_moved=lambda series, lags, horizon: 4 * series * (2 * lags + horizon),
            edges=(
                Workload(series=7, length=9, lags=4, horizon=0), Workload(series=65, length=50, lags=3, horizon=37),
                Workload(series=33, length=9, lags=5, horizon=11),
                Workload(series=131, length=16, lags=16, horizon=65),
                Workload(series=37, length=100, lags=65, horizon=70),
                Workload(series=40, length=64, lags=64, horizon=129),
            ),
            golden=(), peers={}, only_labels=("S0", "S1"), budgets=(),
        ),
        "serial": Variant(
            "a few series of many steps, in chunks that begin at once",
            arguments=(
                *arguments(PHI), Scratch("states", "series chunks lags", dtype="float64"), Size("steps"),
                Size("chunks"),
            ),
            derived={
                "steps": lambda horizon: max(32, -(-round(horizon**0.5) // 32) * 32),
                "chunks": lambda horizon, steps: -(-horizon // steps),
            },
            rules=(*RULES, Rule("lags <= 31, a lane for each", lambda lags: lags <= 31),
                   Rule("series < 65,536", lambda series: series < 65_536)),
            launch=launch_serial, reference=reference_serial,
            bytes_moved=lambda series, lags, horizon: 4 * series * (lags + horizon) + 8 * lags,  # read by both launches
            tolerance=reduction(magnitude=growth_serial, terms=lambda lags: (lags + 2) * 2.0**-24),
            workloads={
                "S0": Workload(series=1, length=1000, lags=5, horizon=10),
                "S1": Workload(series=1, length=5, lags=5, horizon=1_000_000),
            },
            edges=(
                Workload(series=7, length=9, lags=4, horizon=0), Workload(series=0, length=9, lags=4, horizon=3),
                Workload(series=1, length=1, lags=1, horizon=1), Workload(series=3, length=40, lags=31, horizon=1000),
                Workload(series=2, length=5, lags=5, horizon=10_001, intercept=0.0),
                Workload(series=2, length=9, lags=4, horizon=1210),
            ),
            golden=(GUIDED,), peers={}, traffic_factor=None, budgets=(),
        ),
    },
)  # fmt: skip
