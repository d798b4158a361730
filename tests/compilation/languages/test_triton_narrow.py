"""bfloat16 and 8-bit floats in Triton's interpreter: rounded like a GPU rounds, or refused with the operation."""

from pathlib import Path

import numpy as np
import pytest

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.compilation.languages import build, build_request, language
from prism_bench.errors import BackendUnavailable
from prism_bench.run.verification import passed, verify
from prism_bench.spec.case import Device

TYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
SPEC = """
import numpy as np
from prism_bench import In, KernelSpec, Launch, Out, Scalar, Size, Workload, exact, integers, normal
from prism_bench.spec.dtypes import stored, values_of

def rounded(values):
    return values_of(stored(values, {dtype!r}), {dtype!r})

spec = KernelSpec(
    source="../../src/kernel.py",
    language="triton",
    entry="kernel",
    arguments=(
        In("x", "16 32", {dtype!r}, {fill}),
        In("w", "32 16", {dtype!r}, {fill}),
        Out("y", "{shape}", {out!r}),
        Scalar("by", "bfloat16"),
    ),
    parameters={{"by": 0.3}},
    launch=lambda rows: Launch(1),
    reference=lambda x, w, by: {reference},
    tolerance=exact(),
    workloads={{"S0": Workload(rows=16)}},
)
"""
KERNEL = """
import triton
import triton.language as tl

@triton.jit
def kernel(x, w, y, by):
    rows, cols = tl.arange(0, 16), tl.arange(0, 32)
    a = tl.load(x + rows[:, None] * 32 + cols[None, :])
    b = tl.load(w + cols[:, None] * 16 + rows[None, :])
    tl.store({at}, {})
"""


@pytest.fixture(autouse=True)
def triton(monkeypatch, tmp_path):
    try:
        language("triton").require_installed()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def _case(folder: Path, dtype, stored, reference, shape="16 32", out=None, fill="normal()"):
    spec = SPEC.format(dtype=dtype, reference=reference, shape=shape, out=out or dtype, fill=fill)
    for path, text in (
        ("src/kernel.py", KERNEL.format(stored, at=AT_Y if shape == "16 16" else AT_X)),
        ("bench/ops/kernel.py", spec),
        ("pyproject.toml", ""),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    catalogue = discover(folder / "bench")
    assert catalogue.problems == ()
    (case,) = catalogue.cases(["kernel"], ("S0",))
    return case


AT_X, AT_Y = "y + rows[:, None] * 32 + cols[None, :]", "y + rows[:, None] * 16 + rows[None, :]"
EXACT = {  # what is stored, the reference, the shape and the type of the output
    "copied": ("a", "x", "16 32", None),
    "added": ("(a.to(tl.float32) * 1.125).to(y.dtype.element_ty)", "rounded(1.125 * x)", "16 32", None),
    "wider": ("a.to(tl.float32)", "x", "16 32", "float32"),
    "bits": ("a.to(tl.{bits}, bitcast=True).to(a.dtype, bitcast=True)", "x", "16 32", None),
    "scalar": ("a.to(tl.float32) * 0 + by", "0 * x + by", "16 32", "float32"),
    "largest": ("tl.max(tl.abs(a.to(tl.float32)), 1)[:, None].to(a.dtype) + a * 0",
                "np.abs(x).max(1, keepdims=True) + 0 * x", "16 32", None),
    "product": ("tl.dot(a, b)", "np.float32(x @ w)", "16 16", "float32"),
}  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", EXACT)
def test_operations_are_those_of_the_values(tmp_path, name, dtype):
    stored, reference, shape, out = EXACT[name]
    bits = "int16" if dtype == "bfloat16" else "int8"
    fill = "integers(-4, 5)" if name == "product" else "normal()"  # sums of these are exact in any order
    case = _case(tmp_path, dtype, stored.replace("{bits}", bits), reference, shape, out, fill)
    assert passed(verify(open_backend("emulator"), case))


def test_sums_of_bfloat16_are_rounded_to_nearest(tmp_path):
    case = _case(tmp_path, "bfloat16", "a + a * a", "rounded(x + rounded(x * x))")
    assert passed(verify(open_backend("emulator"), case))


@pytest.mark.parametrize("dtype", TYPES)
def test_same_kernel_compiles(tmp_path, dtype):
    case = _case(tmp_path, dtype, EXACT["copied"][0], "x")
    (kernel,) = build(build_request(case, Device(compute_capability=90))).kernels.values()
    assert kernel.symbol == "kernel"


def test_operations_without_a_model_are_named_with_their_type(tmp_path):
    case = _case(tmp_path, "bfloat16", f"tl.atomic_add({AT_X}, a)", "x")
    with pytest.raises(BackendUnavailable, match=r"kernel.py:10: .*not emulated: atomic rmw with bf16; the comp"):
        verify(open_backend("emulator"), case)


def test_eight_bit_numbers_beyond_the_largest_become_the_largest(tmp_path):
    case = _case(
        tmp_path,
        "float8_e5m2",
        "(a.to(tl.float32) * 1e9).to(tl.float8e5)",
        "np.clip(1e9 * x, -57344, 57344)",
    )
    inputs = {name: values.on(np) for name, values in case.inputs().items()}
    assert set(inputs) == {"x", "w"}
    assert passed(verify(open_backend("emulator"), case))
