"""The velocity of a belief, (now - before) / dt: a difference and a quotient, each rounded once."""

from prism_bench import Budget, Golden, In, KernelSpec, Out, Rule, Scalar, Size, Workload, elementwise
from prism_bench.spec import Array, Tolerance

from ..include.arrays.map_arrays import MAP_TUNE, in_double, launch_map
from ..include.entropy.gaussian import STATES, edges

# Bound by memory: 12 bytes a state at the copy rate.
launch = launch_map("ai_velocity_update<{}>")


def arguments(dtype: str) -> tuple[Array | Scalar, ...]:
    inputs = (In("now", "n", dtype), In("before", "n", dtype))
    return (*inputs, Out("velocity", "n", dtype), Scalar("dt", dtype), Size("n", "int64"))


def tolerance(dtype: str) -> Tolerance:
    return elementwise(ulps=4, floor=1e-7 if dtype == "float32" else 1e-15)


spec = KernelSpec(
    entry="ai_velocity_update<float>",
    arguments=arguments("float32"),
    parameters={"dt": 0.125},
    rules=(Rule("dt other than 0", lambda dt: dt != 0),),
    launch=launch("float32"),
    tune=MAP_TUNE,
    reference=lambda now, before, dt: (now - before) / dt,
    tolerance=tolerance("float32"),
    peers={"torch": lambda torch, now, before, dt: (now - before) / dt},
    looked_at={"cub": "a transform would be compiled from an expression in the spec, as the compiled torch peer is"},
    flops=lambda n: 2 * n,
    workloads=STATES,
    edges=edges("n"),
    golden=(Golden(Workload(n=2, dt=0.5), {"now": [1, 3], "before": [1, 1]}, {"velocity": [0, 4]}, "calculated"),),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={"f64": in_double(arguments, launch, tolerance)},
)
