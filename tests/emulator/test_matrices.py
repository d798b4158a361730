"""WMMA products of every shape, type and layout against NumPy, in fast and race mode."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.on_device import ON_DEVICE, build

SOURCE = Path(__file__).parent / "kernels" / "matrices.cu"
MNK = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
# CUDA's name, NumPy type of the inputs, accumulator's name and NumPy type, shapes.
KINDS = {
    "half": ("half", "f2", "float", "f4", MNK),
    "half to half": ("half", "f2", "half", "f2", MNK),
    "bfloat16": ("__nv_bfloat16", "u2", "float", "f4", MNK),
    "signed char": ("signed char", "i1", "int", "i4", MNK),
    "unsigned char": ("unsigned char", "u1", "int", "i4", MNK),
    "tf32": ("precision::tf32", "f4", "float", "f4", ((16, 16, 8),)),
    "double": ("double", "f8", "double", "f8", ((8, 8, 4),)),
}
LAYOUTS = ("row_major", "col_major")


def entry(kind, shape, left, right):
    return f"product<{KINDS[kind][0]}, {KINDS[kind][2]}, {shape[0]}, {shape[1]}, {shape[2]}, {left}, {right}>"


CASES = [
    (kind, shape, left, right)
    for kind in KINDS
    for shape in KINDS[kind][4]
    for left, right in product(LAYOUTS, LAYOUTS)
]


SLOTS = {
    **{
        f"{use} {layout}": f"operand_slots<{use}, {layout}>"
        for use, layout in product(("matrix_a", "matrix_b"), LAYOUTS)
    },
    "accumulator": "accumulator_slots",
}
ENTRIES = [*(entry(*case) for case in CASES), "scaled", "off_by_half_a_row", *SLOTS.values()]


@pytest.fixture(scope="module", params=["fast", "race", ON_DEVICE])
def module(request):
    return build(SOURCE, ENTRIES, request.param)


@pytest.fixture(scope="module", params=["fast", "race"])
def emulated(request):
    return build(SOURCE, ENTRIES, request.param)


def stored(values, kind):
    """Small whole numbers as the kernel's type: each product and sum is exact. Short rows are padded to 16 bytes."""
    missing = 16 // np.dtype(KINDS[kind][1]).itemsize - values.shape[1]
    values = np.pad(values, ((0, 0), (0, max(missing, 0))))
    if kind == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(KINDS[kind][1])


@pytest.mark.parametrize("by_rows", [0, 1])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_product(module, case, by_rows):
    kind, (m, n, k), left, right = case
    rng = np.random.default_rng(1)
    low = 0 if kind == "unsigned char" else -8
    a, b, c = rng.integers(low, 9, (m, k)), rng.integers(low, 9, (k, n)), rng.integers(-8, 9, (m, n))
    d = np.zeros(m * n, KINDS[kind][3])
    inputs = [
        stored(a if left == "row_major" else a.T, kind),
        stored(b if right == "row_major" else b.T, kind),
        np.ascontiguousarray(c if by_rows else c.T).astype(KINDS[kind][3]),
    ]
    report = module.launch(entry(*case), 1, 32, [*inputs, d, np.int32(by_rows)])
    assert report.is_clean, str(report)
    result = d.reshape(m, n) if by_rows else d.reshape(n, m).T
    np.testing.assert_array_equal(result.astype(np.int64), a @ b + c)


def test_elements_of_fragments_can_be_worked_on(module):
    a = np.random.default_rng(2).integers(-4, 5, (16, 16)).astype(np.float16)
    d = np.zeros((16, 16), np.float32)
    assert module.launch("scaled", 1, 32, [a, d]).is_clean
    wide = a.astype(np.float32)
    np.testing.assert_array_equal(d, np.maximum(2 * wide @ wide.T + 1.5, 0))


def test_matrix_off_its_alignment_is_told(emulated):
    (finding,) = emulated.launch(
        "off_by_half_a_row", 1, 32, [np.zeros((17, 16), np.float16), np.zeros(32, np.float32)]
    ).findings
    assert finding.kind == "misaligned"
    assert "fa, a + 8, 16" in SOURCE.read_text().split("\n")[finding.line - 1]


def slots(module, fragment):
    """The flat index into the tile of what each lane's slots hold, one row per lane."""
    dtype, size = (np.float32, 8) if fragment == "accumulator" else (np.float16, 16)
    held = np.full((32, size), -1, dtype)
    assert module.launch(SLOTS[fragment], 1, 32, [np.arange(256, dtype=dtype), held]).is_clean
    return held.astype(int)


@pytest.mark.parametrize("fragment", SLOTS)
def test_fragments_hold_every_element_equally_often(module, fragment, record_property):
    """Where they hold it is the device's own affair, kept with the test's result (`--junitxml`)."""
    held = slots(module, fragment)
    record_property("lanes", "; ".join(" ".join(map(str, lane)) for lane in held.tolist()))
    np.testing.assert_array_equal(np.bincount(held.reshape(-1), minlength=256), held.size // 256)


@pytest.mark.gpu
@pytest.mark.parametrize("fragment", SLOTS)
def test_fragments_are_laid_out_as_on_the_device(fragment):
    """Nothing may depend on the layout; that it is the device's makes a kernel that does fail alike on both."""
    device, emulated = (build(SOURCE, [SLOTS[fragment]], mode) for mode in ("device", "fast"))
    np.testing.assert_array_equal(slots(emulated, fragment), slots(device, fragment))
