"""A batch of vector additions, c = a + b for each: a launch for every call, or one for all of them."""

from types import ModuleType
from typing import Any

from prism_bench import Budget, Chain, In, KernelSpec, Launch, Out, Rule, Scalar, Size, Variant, Workload, Zero, exact
from prism_bench.spec import AnyArray

# A call of 1000 elements moves 12 kB, far less than a launch costs, so launches limit it: `full` has one for all calls.
MOST = 100
CALLS = tuple(f"call{number}" for number in range(MOST))


def separate(batch: int, n: int) -> tuple[Launch | Zero, ...]:
    """A launch for every call."""
    passed = ("a", "b", "c", "n")
    return tuple(
        Launch(-(-n // 1024), 256, entry="vector_add_call", arguments=(*passed, call)) for call in CALLS[:batch]
    )


def at_once(batch: int, n: int) -> Launch:
    return Launch((-(-n // 1024), batch), 256, arguments=("a", "b", "c", "n"))


def torch_add(torch: ModuleType, a: AnyArray, b: AnyArray) -> Any:
    return torch.add(a, b)


spec = KernelSpec(
    entry="vector_add_batch",
    arguments=(
        *(In(name, "batch n") for name in ("a", "b")),
        Out("c", "batch n"),
        Size("n", "int64"),
        *(Scalar(call, "int32") for call in CALLS),
    ),
    parameters={call: number for number, call in enumerate(CALLS)},
    rules=(Rule(f"at most {MOST} calls", lambda batch: batch <= MOST),),
    launch=separate,
    reference=lambda a, b: a + b,
    tolerance=exact(),
    before="vector_add_batch:full",
    flops=lambda batch, n: batch * n,
    workloads={
        "S0": Workload(batch=100, n=1000),
        "S1": Workload(batch=100, n=100_000),
        "S2": Workload(batch=100, n=4 << 20),
    },
    edges=tuple(Workload(batch=b, n=n) for b, n in ((1, 1), (3, 5), (7, 1026), (2, 4099), (100, 3), (5, 0))),
    variants={
        "full": Variant(
            "all calls in one launch",
            launch=at_once,
            peers={"torch": torch_add},
            budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
        ),
    },
    chains=(Chain("vector_add_batch", {"baseline": None, "full": "full"}),),
)
