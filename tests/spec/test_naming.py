"""Names of cases that no list has: every value is read as its parameter's type."""

import pytest

from prism_bench import In, KernelSpec, Launch, Out, Workload
from prism_bench.spec.case import read_case

SPEC = KernelSpec(
    entry="scale",
    arguments=(In("x", "n"), Out("y", "n")),
    parameters={"flag": False, "scaling": None, "units": "nats", "factor": 1.0},
    launch=lambda n: Launch(n, 32),
    reference=lambda x: x,
    workloads={"S0": Workload(n=64)},
    name="scale",
)


@pytest.mark.parametrize(
    ("text", "axis", "value"),
    [
        ("flag=False", "flag", False), ("flag=True", "flag", True), ("scaling=None", "scaling", None),
        ("scaling=0.5", "scaling", 0.5), ("units=bits", "units", "bits"), ("factor=2", "factor", 2.0),
    ],
)  # fmt: skip
def test_a_value_of_a_name_is_read_as_its_type(text: str, axis: str, value: object) -> None:
    case = read_case(f"scale[n=7,{text}]", {"scale": SPEC})
    assert case is not None
    assert case.workload["n"] == 7
    assert case.workload[axis] is value if value in (True, False, None) else case.workload[axis] == value


@pytest.mark.parametrize("text", ["n=7,flag=0", "n=7,flag=yes", "n=7,scaling=half", "n=x", "flag=True", "n=7,m=1"])
def test_a_name_with_a_wrong_value_is_no_case(text: str) -> None:
    assert read_case(f"scale[{text}]", {"scale": SPEC}) is None
