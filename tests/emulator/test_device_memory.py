"""Constants, shared memory, atomics, asynchronous copies, vector types and arguments of the emulated device."""

import re
from pathlib import Path

import numpy as np
import pytest

from prism_bench.emulator import ORDERS, DeviceBuffer, compile_source
from prism_bench.errors import SpecError

SOURCE = Path(__file__).parent / "kernels" / "memory.cu"
_TEXT = SOURCE.read_text()
ATOMICS = re.findall(r"^ATOMIC\((\w+)", _TEXT, re.MULTILINE)
TEMPLATES = ("name", "two_dynamic_arrays", "leftovers", "unwritten")
PLAIN = [name for name in re.findall(r"void (\w+)\(", _TEXT) if name not in TEMPLATES]
UNWRITTEN = [f"unwritten<{kind}>" for kind in ("unsigned char", "unsigned short", "float", "double")]
ENTRIES = [
    *ATOMICS, *PLAIN, *UNWRITTEN, "two_dynamic_arrays<float, 64>", "two_dynamic_arrays<double, 32>", "leftovers<32>"
]  # fmt: skip


@pytest.fixture(scope="module")
def module():
    return compile_source(SOURCE, entries=ENTRIES)


@pytest.fixture(scope="module")
def watched():
    return compile_source(SOURCE, entries=ENTRIES, mode="race")


def test_constants_and_global_variables(module):
    module.set_symbol("weights", np.array([1, 2, 3, 4], np.float32))
    module.set_symbol("visits", np.zeros(1, np.uint32))
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    assert module.launch("weighted", 1, 32, [x, y]).is_clean
    assert y.tolist() == [1, 2, 3, 4] * 8
    assert module.get_symbol("visits", np.uint32).tolist() == [32]
    assert module.get_symbol("table", np.int32).tolist() == [5, 6, 7]


def test_wrong_name_or_size_of_a_variable_is_refused(module):
    with pytest.raises(SpecError, match="no variable 'weight' in this module; it has weights, visits, table"):
        module.set_symbol("weight", np.zeros(4, np.float32))
    with pytest.raises(SpecError, match="weights: 12 bytes passed, the variable has 16"):
        module.set_symbol("weights", np.zeros(3, np.float32))


@pytest.mark.parametrize(("kind", "n", "dtype"), [("float", 64, np.float32), ("double", 32, np.float64)])
def test_dynamic_shared_memory_holds_what_it_is_cast_to(module, watched, kind, n, dtype):
    for one in (module, watched):
        y = np.zeros(n, dtype)
        report = one.launch(f"two_dynamic_arrays<{kind}, {n}>", 1, n, [y], shared_bytes=2 * y.nbytes)
        assert report.is_clean, str(report)
        np.testing.assert_array_equal(y, 3 * np.arange(n)[::-1])


def test_dynamic_shared_memory_in_rows(module):
    y = np.zeros(64, np.float32)
    assert module.launch("rows_of_dynamic_memory", 1, 64, [y], shared_bytes=256).is_clean
    np.testing.assert_array_equal(y, np.arange(64).reshape(8, 8).T.reshape(-1))


@pytest.mark.parametrize("order", ORDERS)
def test_each_block_finds_shared_memory_unwritten(module, order):
    y = np.zeros(96, np.int32)
    assert module.launch("leftovers<32>", 3, 32, [y], shared_bytes=128, order=order).is_clean
    assert y.tolist() == [3] * 96


@pytest.mark.parametrize(
    ("kind", "exponent"),
    [
        ("unsigned char", 0x7F),  # FP8: all of it is the NaN of e4m3, and one of e5m2
        ("unsigned short", 0x7C00),  # FP16
        ("unsigned short", 0x7F80),  # BF16
        ("float", 0x7F800000),
        ("double", 0x7FF0000000000000),
    ],
    ids=["fp8", "fp16", "bf16", "fp32", "fp64"],
)
def test_unwritten_shared_memory_is_a_nan_unlike_that_of_outputs(module, watched, kind, exponent):
    dtype = {"unsigned char": "u1", "unsigned short": "u2", "float": "f4", "double": "f8"}[kind]
    for one in (module, watched):
        y = np.zeros(64, dtype)
        one.launch(f"unwritten<{kind}>", 1, 32, [y], shared_bytes=y.nbytes // 2)
        bits = [int(element) for element in y.view(f"u{y.itemsize}")]
        assert {exponent} == {each & exponent for each in bits}
        if y.itemsize > 1:
            mantissa = 2 ** (8 * y.itemsize - 1) - 1 - exponent
            assert all(each & mantissa for each in bits), "infinite"
            assert 2 ** (8 * y.itemsize) - 1 not in bits, "the poison of an output"


ATOMIC_RESULTS = {
    "add_int": lambda a, x: a + x.sum(),
    "add_float": lambda a, x: a + x.sum(),
    "add_double": lambda a, x: a + x.sum(),
    "sub_int": lambda a, x: a - x.sum(),
    "min_int": lambda a, x: min(a, x.min()),
    "max_unsigned": lambda a, x: max(a, x.max()),
    "and_unsigned": lambda a, x: a & np.bitwise_and.reduce(x),
    "or_unsigned": lambda a, x: a | np.bitwise_or.reduce(x),
    "xor_unsigned": lambda a, x: a ^ np.bitwise_xor.reduce(x),
    "exchange": lambda a, x: x[-1],
    "maximum_by_swap": lambda a, x: max(a, x.max()),
}
DTYPES = {"float": np.float32, "double": np.float64, "unsigned": np.uint32, "swap": np.float32}


@pytest.mark.parametrize("name", ATOMIC_RESULTS)
def test_atomic(module, watched, name):
    dtype = DTYPES.get(name.rsplit("_", 1)[-1], np.int32)
    x = np.random.default_rng(1).integers(1, 200, 64).astype(dtype)
    for one in (module, watched):
        a, old = np.array([77], dtype), np.zeros(64, dtype)
        report = one.launch(name, 1, 64, [a, x, old])
        assert report.is_clean, str(report)
        assert a[0] == ATOMIC_RESULTS[name](dtype(77), x)


def test_atomics_return_what_was_there(module):
    a, x, old = np.array([5], np.int32), np.full(64, 3, np.int32), np.zeros(64, np.int32)
    module.launch("add_int", 1, 64, [a, x, old])
    assert old.tolist() == [5 + 3 * i for i in range(64)]


def test_wrapping_counters(module):
    limit = np.full(64, 9, np.uint32)
    up, down, old = np.array([4], np.uint32), np.array([4], np.uint32), np.zeros(64, np.uint32)
    module.launch("wrap_up", 1, 64, [up, limit, old])
    assert old.tolist() == [(4 + i) % 10 for i in range(64)]
    module.launch("wrap_down", 1, 64, [down, limit, old])
    assert old.tolist() == [(4 - i) % 10 for i in range(64)]


def test_asynchronous_copies_in_stages(module, watched):
    x = np.arange(4 * 32 * 4, dtype=np.float32)
    for one in (module, watched):
        y = np.zeros_like(x)
        report = one.launch("staged", 1, 32, [x, y, np.int32(4)])
        assert report.is_clean, str(report)
        np.testing.assert_array_equal(y.reshape(4, 32, 4), x.reshape(4, 32, 4)[:, ::-1])


def test_copy_that_is_not_waited_for_has_not_happened(module, watched):
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    module.launch("waits_for_too_few", 1, 32, [x, y])
    assert np.isnan(y).all()
    assert [finding.kind for finding in watched.launch("waits_for_too_few", 1, 32, [x, y]).findings] == [
        "unwritten shared read"
    ]


def test_copy_fills_with_noughts(module):
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    assert module.launch("zero_filled", 1, 32, [x, y]).is_clean
    assert y.tolist() == [1, 0] * 32


def test_vector_types_have_cudas_size_and_alignment(module):
    y = np.zeros(26, np.int32)
    module.launch("vector_types", 1, 1, [y])
    expected = [
        (3, 1),
        (4, 4),
        (4, 4),
        (8, 8),
        (8, 8),
        (12, 4),
        (16, 16),
        (16, 16),
        (8, 8),
        (12, 4),
        (16, 16),
        (16, 16),
        (32, 16),
    ]
    assert list(zip(y[::2].tolist(), y[1::2].tolist(), strict=True)) == expected


def test_structs_and_all_kinds_of_scalars(module):
    shape = np.zeros(1, [("rows", "i4"), ("scale", "f4")])
    shape["rows"], shape["scale"] = 3, 0.5
    y = np.zeros(2, np.float32)
    assert module.launch("by_value", 1, 2, [shape[0], y]).is_clean
    assert y.tolist() == [1.5, 1.5]
    z = np.zeros(1, np.complex64)
    module.launch(
        "every_kind", 1, 1, [np.bool_(True), np.int8(-3), np.uint16(10), np.int64(5), np.float64(0.5), np.ones(1), z]
    )
    assert z[0] == 7 + 6.5j


_TWO = [np.zeros(4, np.float32), np.zeros(4, np.float32)]
_TO_FLOATS = "kernel takes pointer to const 4-byte float"
REFUSED = {
    "too few": ("add_int", _TWO[:1], "1 argument(s) passed, kernel takes 3"),
    "python int": (
        "staged",
        [*_TWO, 4],
        "argument 2: Python int (say its type: np.int32(...), np.float32(...)) passed, kernel takes 4-byte int",
    ),
    "wide int": ("staged", [*_TWO, np.int64(4)], "argument 2: int64 passed, kernel takes 4-byte int"),
    "float for int": ("staged", [*_TWO, np.float32(4)], "argument 2: float32 passed, kernel takes 4-byte int"),
    "wide array": ("weighted", [np.zeros(4), _TWO[1]], f"argument 0: array of float64 passed, {_TO_FLOATS}"),
    "scalar for array": ("weighted", [np.float32(1), _TWO[1]], f"argument 0: float32 passed, {_TO_FLOATS}"),
    "array for scalar": (
        "every_kind",
        [np.zeros(1, bool)] * 7,
        "argument 0: array of bool passed, kernel takes 1-byte bool",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_argument_that_does_not_fit_is_refused(module, case):
    entry, arguments, message = REFUSED[case]
    with pytest.raises(SpecError) as refused:
        module.launch(entry, 1, 32, arguments)
    assert str(refused.value) == f"{entry}: {message}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block": 2048}, "has 2,048 in x; a launch has 1 to 1,024"),
        ({"grid": 0}, "has 0 in x; a launch has 1 to"),
        ({"shared_bytes": 1 << 20}, "at most 232,448"),
        ({"order": "sideways"}, "forward, reverse, shuffled"),
    ],
)
def test_launch_beyond_the_devices_limits_is_refused(module, changes, message):
    with pytest.raises(SpecError, match=message):
        module.launch(
            **{"entry": "vector_types", "grid": 1, "block": 1, "arguments": [np.zeros(26, np.int32)], **changes}
        )


def test_unknown_kernel_is_refused_with_the_known_ones(module):
    with pytest.raises(SpecError, match="no kernel 'stage' in this module; it has add_int"):
        module.launch("stage", 1, 1, [])


def test_buffer_lives_over_several_launches(module):
    buffer, x, old = DeviceBuffer(np.array([5], np.int32)), np.ones(64, np.int32), np.zeros(64, np.int32)
    for _ in range(3):
        module.launch("add_int", 1, 64, [buffer, x, old])
    assert buffer.to_host().tolist() == [5 + 3 * 64]
    assert buffer.address % 256 == 0


def test_same_array_twice_is_one_buffer(module):
    x = np.ones(64, np.int32)
    module.launch("add_int", 1, 64, [x, x, np.zeros(64, np.int32)])
    assert x[0] == 65


def test_const_arrays_and_views_come_back_right(module):
    x = np.arange(64, dtype=np.float32)[::2]
    y = np.zeros(64, np.float32)[::2]
    module.set_symbol("weights", np.ones(4, np.float32))
    module.launch("weighted", 1, 32, [x, y])
    np.testing.assert_array_equal(y, np.arange(0, 64, 2))
