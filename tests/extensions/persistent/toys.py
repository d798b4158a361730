"""Cases to serve: the kernels of `work.cuh`, of which some complain, never end or break down."""

from pathlib import Path

from prism_bench import In, InOut, KernelSpec, Launch, Out, Scalar, Size, Workload, constant
from prism_bench.spec.case import Case

HERE = Path(__file__).parent
SOURCE, SERVED = HERE / "work.cuh", HERE / "served.cu"
N = 1000


def case_of(entry, arguments, launch, workload=Workload(n=N), **more):  # noqa: B008 - frozen
    """Return a case of one of these kernels, without a reference."""
    spec = KernelSpec(
        entry=entry,
        arguments=arguments,
        launch=launch,
        reference=lambda: (),
        workloads={"S0": workload},
        name=entry,
        family="toys",
        source=SOURCE,
        **more,
    )
    return Case(spec, workload, "S0")


def blocks(n):
    return -(-n // 256)


DOUBLED = case_of(
    "twice", (In("x", "n"), Out("y", "n"), Size("n")), lambda n: Launch(blocks(n), 256, arguments=("x", "y", "n"))
)
# The second kernel reads what other blocks of the first have written.
TURNED = case_of(
    "twice",
    (In("x", "n"), Out("y", "n"), InOut("z", "n"), Size("n")),
    lambda n: (
        Launch(blocks(n), 256, arguments=("x", "y", "n")),
        Launch(blocks(n), 256, entry="add_turned", arguments=("y", "z", "n")),
    ),
)
COMPLAINING = case_of("complain", (Scalar("code", "int32"),), lambda: Launch(3, 256), parameters={"code": 7})
ENDLESS = case_of("never_end", (In("zero", "1", fill=constant(0.0)),), lambda: Launch(2, 256))
BROKEN = case_of("break_down", (), lambda: Launch(2, 256))
