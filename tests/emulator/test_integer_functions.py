"""Each integer intrinsic against its definition in Python's own integers."""

import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.on_device import ON_DEVICE, build

SOURCE = Path(__file__).parent / "kernels" / "integer_functions.cu"
SIGNATURES = {
    name: (count, kind, result)
    for count, name, kind, result in re.findall(
        r"^(ONE|TWO|THREE)\((\w+), ([\w ]+), ([\w ]+),", SOURCE.read_text(), re.MULTILINE
    )
}
DTYPES = {"int": np.int32, "u32": np.uint32, "long long": np.int64, "u64": np.uint64}
COUNT = {"ONE": 1, "TWO": 2, "THREE": 3}
AWKWARD = [
    0,
    1,
    2,
    7,
    31,
    32,
    33,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0x01020304,
    0xDEADBEEF,
    2**63,
    2**64 - 1,
]


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def parts(value, bits, is_signed=False):
    chosen = [(value >> shift) & ((1 << bits) - 1) for shift in range(0, 32, bits)]
    return [signed(part, bits) for part in chosen] if is_signed else chosen


def packed(bits, operation, is_signed=False):
    def apply(a, b):
        pairs = zip(parts(a, bits, is_signed), parts(b, bits, is_signed), strict=True)
        return sum((operation(x, y) & ((1 << bits) - 1)) << (bits * i) for i, (x, y) in enumerate(pairs))

    return apply


def dot(a, b, c, bits=8, is_signed=True, first=0):
    words = parts(a, bits, is_signed)
    return c + sum(x * y for x, y in zip(words, parts(b, 8, is_signed)[first:], strict=False))


def byte_perm(a, b, selector):
    pool = parts(a, 8) + parts(b, 8)
    return sum(pool[(selector >> (4 * i)) & 7] << (8 * i) for i in range(4))


def reversed_bits(width):
    return lambda a: int(format(a, f"0{width}b")[::-1], 2)


def leading_zeros(width):
    return lambda a: width - (a & ((1 << width) - 1)).bit_length()


def first_set(a):
    return (a & -a).bit_length()


def absolute(a, b):
    return abs(a - b)


DEFINITIONS = {
    "popc": int.bit_count,
    "popcll": int.bit_count,
    "ffs": first_set,
    "ffsll": first_set,
    "clz": leading_zeros(32),
    "clzll": leading_zeros(64),
    "brev": reversed_bits(32),
    "brevll": reversed_bits(64),
    "mulhi": lambda a, b: a * b >> 32,
    "umulhi": lambda a, b: a * b >> 32,
    "mul64hi": lambda a, b: a * b >> 64,
    "umul64hi": lambda a, b: a * b >> 64,
    "mul24": lambda a, b: signed(a, 24) * signed(b, 24),
    "umul24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "hadd": lambda a, b: (a + b) >> 1,
    "rhadd": lambda a, b: (a + b + 1) >> 1,
    "uhadd": lambda a, b: (a + b) >> 1,
    "urhadd": lambda a, b: (a + b + 1) >> 1,
    "sad": lambda a, b, c: abs(a - b) + c,
    "usad": lambda a, b, c: abs(a - b) + c,
    "byte_perm": byte_perm,
    "funnelshift_l": lambda lo, hi, s: ((hi << 32 | lo) << (s & 31)) >> 32,
    "funnelshift_r": lambda lo, hi, s: (hi << 32 | lo) >> (s & 31),
    "funnelshift_lc": lambda lo, hi, s: ((hi << 32 | lo) << min(s, 32)) >> 32,
    "funnelshift_rc": lambda lo, hi, s: (hi << 32 | lo) >> min(s, 32),
    "dp4a": dot,
    "udp4a": lambda a, b, c: dot(a, b, c, is_signed=False),
    "dp2a_lo": lambda a, b, c: dot(a, b, c, 16),
    "dp2a_hi": lambda a, b, c: dot(a, b, c, 16, first=2),
    "udp2a_lo": lambda a, b, c: dot(a, b, c, 16, is_signed=False),
    "udp2a_hi": lambda a, b, c: dot(a, b, c, 16, is_signed=False, first=2),
    "vadd4": packed(8, int.__add__),
    "vsub4": packed(8, int.__sub__),
    "vabsdiffu4": packed(8, absolute),
    "vmaxu4": packed(8, max),
    "vminu4": packed(8, min),
    "vmaxs4": packed(8, max, is_signed=True),
    "vmins4": packed(8, min, is_signed=True),
    "vavgu4": packed(8, lambda x, y: (x + y + 1) >> 1),
    "vcmpeq4": packed(8, lambda x, y: 0xFF * (x == y)),
    "vsadu4": lambda a, b: sum(map(absolute, parts(a, 8), parts(b, 8))),
    "vadd2": packed(16, int.__add__),
    "vsub2": packed(16, int.__sub__),
    "vabsdiffu2": packed(16, absolute),
    "vmaxu2": packed(16, max),
    "vminu2": packed(16, min),
    "vmaxs2": packed(16, max, is_signed=True),
    "vmins2": packed(16, min, is_signed=True),
    "maximum": max,
    "minimum": min,
    "mixed_maximum": max,
    "float_bits_there_and_back": lambda a: a,
    "double_parts": lambda a: a,
}


@pytest.fixture(scope="module", params=["fast", "address", ON_DEVICE])
def module(request):
    with closing(build(SOURCE, list(SIGNATURES), request.param)) as built:
        yield built


def samples(kind, seed):
    dtype = DTYPES[kind]
    width = 8 * np.dtype(dtype).itemsize
    awkward = np.array([value & ((1 << width) - 1) for value in AWKWARD], np.uint64)
    drawn = np.random.default_rng(seed).integers(0, 2**64, 500, dtype=np.uint64)
    together = np.concatenate([np.random.default_rng(seed).permutation(np.tile(awkward, 20)), drawn])
    return together.astype(np.uint64).astype(f"u{width // 8}").view(dtype)


def test_every_kernel_has_a_definition():
    assert set(SIGNATURES) == set(DEFINITIONS)


@pytest.mark.parametrize("name", SIGNATURES)
def test_intrinsic_is_what_its_definition_says(module, name):
    count, kind, result = SIGNATURES[name]
    inputs = [samples(kind, seed) for seed in range(COUNT[count])]
    output = np.zeros(len(inputs[0]), DTYPES[result])
    assert module.launch(name, -(-output.size // 128), 128, [*inputs, output, np.int32(output.size)]).is_clean
    width = 8 * output.dtype.itemsize
    expected = [
        DEFINITIONS[name](*(int(value) for value in values)) & ((1 << width) - 1)
        for values in zip(*inputs, strict=True)
    ]
    np.testing.assert_array_equal(output.view(f"u{width // 8}"), np.array(expected, dtype=f"u{width // 8}"))
