"""Frames arrive as they were sent; anything else than a frame is one error, whatever the bytes are."""

import io
import json
import struct

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from prism_bench.io import channels
from prism_bench.io.channels import FrameError, can_be_sent, frame_parts, read_frame


class Greeting(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    name: str
    numbers: tuple[int, ...] = ()
    ratio: float = 0.0


class Farewell(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    reason: str | None


DECODER = msgspec.json.Decoder(Greeting | Farewell)
LIMIT = 1 << 16

greetings = st.builds(
    Greeting,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(tuple),
    st.floats(allow_nan=False, allow_infinity=False),
)
farewells = st.builds(Farewell, st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
dtypes = st.one_of(
    hnp.boolean_dtypes(), hnp.integer_dtypes(endianness="?"), hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(), st.integers(1, 40).map(lambda size: np.dtype(f"V{size}")),
)  # fmt: skip
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
arrays = dtypes.flatmap(lambda dtype: shapes.map(lambda shape: filled(shape, dtype)))
sent = st.tuples(greetings | farewells, st.lists(arrays, max_size=4))


def filled(shape, dtype):
    array = np.empty(shape, dtype)
    size = array.nbytes
    return np.frombuffer(bytes(index * 37 % 251 for index in range(size)), dtype).reshape(shape) if size else array


def encoded(message, arrays=()):
    return b"".join(frame_parts(message, arrays))


def received(data, largest=LIMIT):
    """The frame in the data, and what follows it."""
    stream = io.BytesIO(data)

    def fill(view):
        count = stream.readinto(view)
        if not count and len(view):
            raise EOFError
        if count < len(view):
            raise FrameError("the data ends within a frame")

    return read_frame(fill, DECODER, largest), stream.read()


def frame_of(header, payload=b"", magic=channels.MAGIC, header_bytes=None, payload_bytes=None):
    """A frame that may be wrong anywhere."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    lengths = struct.pack("<IQ", len(text) if header_bytes is None else header_bytes,
                          len(payload) if payload_bytes is None else payload_bytes)  # fmt: skip
    return magic + lengths + text + payload


@given(sent)
def test_a_frame_arrives_as_it_was_sent(content):
    message, arrays = content
    frame, rest = received(encoded(message, arrays) + b"next")
    assert (message, b"next") == (frame.message, rest)
    assert [(a.shape, a.dtype, a.tobytes()) for a in arrays] == [(a.shape, a.dtype, a.tobytes()) for a in frame.arrays]
    assert all(array.flags.writeable for array in frame.arrays)


def test_arrays_that_are_not_contiguous_arrive_in_their_order():
    array = np.arange(24, dtype="f4").reshape(4, 6)
    for view in (array.T, array[::2], array[:, ::-1], np.asfortranarray(array)):
        np.testing.assert_array_equal(view, received(encoded(Farewell(None), [view]))[0].arrays[0])


def test_numpy_scalars_are_numbers_in_a_message():
    assert Greeting("a", (3,), 0.5) == received(encoded(Greeting("a", (np.int32(3),), np.float32(0.5))))[0].message


@given(st.binary(max_size=200))
def test_random_bytes_are_no_frame(data):
    with pytest.raises((FrameError, EOFError) if not data else FrameError):
        received(data)


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 400))
def test_random_bytes_behind_a_right_beginning_are_no_frame(data, header, payload):
    with pytest.raises(FrameError):
        received(channels.MAGIC + struct.pack("<IQ", header, payload) + data)


@given(sent, st.data())
def test_a_frame_with_flipped_bits_is_an_error_or_has_the_expected_types(content, data):
    raw = bytearray(encoded(*content))
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        frame, _ = received(bytes(raw))
    except FrameError:
        return
    assert isinstance(frame.message, Greeting | Farewell)
    assert all(can_be_sent(array.dtype) for array in frame.arrays)
    assert sum(array.nbytes for array in frame.arrays) <= LIMIT


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
array_headers = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["<f4", "<i8", "|b1", "|V3", "|O", "<f3", "|S4", "<U2", "V0", "|V0", "f4,f4"]),
        "shape": st.lists(st.integers(-2, 2**70) | st.integers(0, 3), max_size=40),
        "bytes": st.integers(-8, 2**70) | st.integers(0, 64),
    }
)
headers = st.fixed_dictionaries(
    {
        "message": st.just({"type": "Farewell", "reason": None}) | json_values,
        "arrays": st.lists(array_headers, max_size=3) | json_values,
    },
    optional={"more": json_values},
)


@given(headers, st.binary(max_size=64), st.integers(0, 2**64 - 1) | st.none())
def test_a_header_that_lies_is_an_error_or_has_the_expected_types(header, payload, payload_bytes):
    try:
        frame, _ = received(frame_of(header, payload, payload_bytes=payload_bytes))
    except FrameError:
        return
    assert isinstance(frame.message, Greeting | Farewell)
    assert sum(array.nbytes for array in frame.arrays) <= len(payload)


GOOD = {"type": "Farewell", "reason": None}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame_of({"message": GOOD, "arrays": []}, magic=b"\x80\x04\x95."), "a frame begins with b'PBF1'"),
        (frame_of(b"{}", header_bytes=2**32 - 1), "the header has 4294967295 bytes"),
        (frame_of(b"{}", payload_bytes=2**64 - 1), "the arrays have 18446744073709551615 bytes"),
        (frame_of({"message": GOOD, "arrays": [{"dtype": "|O", "shape": [1], "bytes": 8}]}, bytes(8)), "'|O'"),
        (frame_of({"message": GOOD, "arrays": [{"dtype": "<f3", "shape": [1], "bytes": 3}]}, bytes(3)), "f3"),
        (frame_of({"message": GOOD, "arrays": [{"dtype": "<f4", "shape": [2], "bytes": 4}]}, bytes(4)), "not 4 bytes"),
        (frame_of({"message": GOOD, "arrays": [{"dtype": "<f4", "shape": [-1], "bytes": 4}]}, bytes(4)), "shape"),
        (frame_of({"message": GOOD, "arrays": [{"dtype": "<f4", "shape": [0, 2**80], "bytes": 0}]}), "shape"),
        (frame_of({"message": GOOD, "arrays": [{"dtype": "<f4", "shape": [0, *[2**39] * 8], "bytes": 0}]}), "memory"),
        (frame_of({"message": GOOD, "arrays": []}, bytes(4)), "add up to 0"),
        (frame_of({"message": GOOD, "arrays": [{"dtype": "|u1", "shape": [0], "bytes": 0}] * 5000}), "5000 arrays"),
        (frame_of({"message": GOOD, "arrays": [{"dtype": "|u1", "shape": [9], "bytes": 9}]}, payload_bytes=9), "ends"),
        (frame_of(b'{"message": {"type": "Greeting", "name": "a", "ratio": NaN}, "arrays": []}'), "JSON"),
        (frame_of(b'{"message": {"type": "Greeting", "name": "a", "ratio": 1e999}, "arrays": []}'), "JSON"),
        (frame_of(b'{"message": ' + b"[" * 100_000 + b"]" * 100_000 + b', "arrays": []}'), "JSON"),
        (frame_of(b'{"message": {"type": "Greeting", "name": "\xff"}, "arrays": []}'), "JSON"),
        (frame_of({"message": {"type": "Gift", "name": "a"}, "arrays": []}), "JSON"),
        (frame_of({"message": {"type": "Greeting", "name": 3}, "arrays": []}), "JSON"),
        (frame_of({"message": GOOD, "arrays": [], "more": 1}), "JSON"),
    ],
)
def test_what_is_wrong_with_a_frame_is_reported(data, words):
    with pytest.raises(FrameError) as error:
        received(data)
    assert words in str(error.value)


def test_an_end_between_frames_is_no_error():
    with pytest.raises(EOFError):
        received(b"")


@pytest.mark.parametrize("array", [np.array([object()]), np.empty(1, "V0"), np.empty(1, "V100000")])
def test_arrays_that_are_not_plain_bytes_are_not_sent(array):
    with pytest.raises(ValueError, match="cannot be sent"):
        encoded(Farewell(None), [array])


def test_arrays_of_other_types_travel_as_bytes_of_their_size():
    pairs = np.array([(1, 2.0)], [("a", "<i4"), ("b", "<f8")])
    (array,) = received(encoded(Farewell(None), [pairs]))[0].arrays
    assert ("|V12", pairs.tobytes()) == (array.dtype.str, array.tobytes())
