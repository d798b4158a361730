"""The guards of outputs: what they spoil, what they see, what they leave alone; the device's on the emulator."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.base import POOL, ROOM, HostGuard
from prism_bench.backends.cuda import guard as on_device
from prism_bench.emulator import compile_source
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.inputs import BLOCK, ONE_BY_ONE, InputArray, Runs

SOURCE = Path(on_device.__file__).with_name("guard.cu")
DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "bool", "complex64", "complex128")


class Memory(np.ndarray):
    """An array with what CuPy's have of their own."""

    def get(self):
        return np.array(self)

    @property
    def data(self):
        return SimpleNamespace(memset_async=lambda value, size: self.reshape(-1).view(np.uint8).fill(value))


def memory(array):
    return np.ascontiguousarray(array).view(Memory)


CUPY = SimpleNamespace(
    zeros=lambda shape, dtype: memory(np.zeros(shape, dtype)),
    empty=lambda shape, dtype: memory(np.full(shape, 7, dtype)),
    asarray=memory,
)


@pytest.fixture(scope="session")
def kernels():
    """The device's kernels on the emulator, called as CuPy's are."""
    try:
        module = compile_source(SOURCE, (), on_device._ENTRIES)
    except BackendUnavailable as error:
        pytest.skip(str(error))

    def launcher(entry):
        def launch(grid, block, arguments):
            first, *rest = (np.asarray(one) for one in arguments)
            values = [one if one.ndim else one[()] for one in rest]
            module.launch(entry, grid, block, [first.reshape(-1).view(np.uint8), *values])

        return launch

    return {entry: launcher(entry) for entry in on_device._ENTRIES}


@pytest.fixture(params=["host", "device"])
def guarded(request, kernels, monkeypatch):
    monkeypatch.setattr(on_device, "guard_kernels", lambda cupy, architecture: kernels)
    if request.param == "host":
        return HostGuard
    device = SimpleNamespace(sm_count=1, compute_capability=90)
    return lambda outputs, **facts: on_device.CudaGuard(CUPY, device, outputs, **facts)


def filled(dtype, count):
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2, count) if dtype in ("bool", "uint8") else rng.normal(0, 100, count)
    return memory(values.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 3, 1000, 2 * POOL + 5])
def test_what_is_spoiled_is_far_off_and_noted_unless_it_is_written_again(guarded, dtype, count):
    array = filled(dtype, count)
    right = np.array(array)
    guard = guarded({"y": array}, key=11)
    guard.spoil(5)
    touched = np.flatnonzero(np.asarray(array).view(f"u{part(array)}") != right.view(f"u{part(array)}"))
    assert 1 <= touched.size <= POOL / 4
    guard.compare(9, 5)
    guard.compare(9, 5, rewritten=True)
    noted = guard.strays()
    assert {(9, "y")} == {(one.sample, one.name) for one in noted}
    assert {one.index for one in noted} <= set(touched.tolist())
    words = np.asarray(array).view(f"u{part(array)}")
    assert all(int(words[one.index]) == one.bits for one in noted)
    assert min(2 * touched.size, ROOM) == len(noted)
    array[...] = right
    guard.compare(10, 5)
    assert [] == guard.strays()


def part(array):
    return array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)


def test_another_key_spoils_other_places(guarded):
    array = filled("float32", 5000)
    right = np.array(array)
    guard = guarded({"y": array}, key=1)
    places = []
    for key in (1, 2):
        array[...] = right
        guard.spoil(key)
        places.append(frozenset(np.flatnonzero(np.asarray(array) != right).tolist()))
    assert len(places[0] & places[1]) < min(map(len, places)) / 2


def test_a_float_is_spoiled_beyond_any_tolerance(guarded):
    array = memory(np.linspace(-3, 3, 20_000).astype(np.float32))
    right = np.array(array)
    guarded({"y": array}, key=1).spoil(8)
    spoiled = np.asarray(array) != right
    with np.errstate(invalid="ignore"):
        near = np.abs(np.asarray(array)[spoiled] - right[spoiled]) < 0.01 * np.abs(right[spoiled])
    assert (spoiled.sum() > 100, 0) == (True, near.sum())


def test_a_wrong_value_that_was_written_is_noted_but_not_taken_for_a_spoiled_one(guarded):
    array = filled("float32", 100)
    guard = guarded({"y": array}, key=1)
    guard.spoil(2)
    array[...] = 5
    guard.compare(1, 2, rewritten=True)
    assert [] == guard.strays()
    guard.compare(1, 2)
    assert 64 == len(guard.strays())


def test_what_is_changed_in_place_is_compared_and_never_spoiled(guarded):
    array = filled("float32", 100)
    right = np.array(array)
    guard = guarded({"x": array}, in_place={"x"}, key=1)
    guard.spoil(2)
    guard.overwrite(2)
    assert right.tobytes() == np.asarray(array).tobytes()
    array[7] += 1
    guard.compare(1, 2, rewritten=True)
    assert [] == guard.strays()
    guard.compare(1, 2)
    assert [7] == [one.index for one in guard.strays()]


@pytest.mark.parametrize("count", [1, 15, 16, 1001])
def test_all_bytes_are_overwritten_and_the_digest_tells(guarded, count):
    array, scratch = filled("uint8", count), memory(np.full(9, 3, np.int32))
    guard = guarded({"y": array, "empty": memory(np.empty(0, np.float32))}, scratch=[scratch], key=1)
    right, before = np.array(array), guard.digests()
    assert before == guard.digests()
    assert {"y"} == set(before)
    guard.overwrite(77)
    assert before != guard.digests()
    assert np.asarray(array).tobytes() != right.tobytes()
    assert not np.asarray(scratch).any()
    if count > 1000:
        assert len(set(np.asarray(array).tolist())) > 200
    array[...] = right
    assert before == guard.digests()


def test_the_digest_knows_places(guarded):
    array = memory(np.arange(64, dtype=np.float32))
    guard = guarded({"y": array}, key=1)
    before = guard.digests()
    array[[3, 40]] = array[[40, 3]]
    assert before != guard.digests()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_an_input_is_nudged_towards_zero_and_mended(guarded, dtype):
    whole, x = memory(np.arange(9, dtype=np.int32)), filled(dtype, 500)
    right = np.array(x)
    guard = guarded({"y": filled("float32", 4)}, inputs=[whole, x], key=4)
    seen = set()
    for key in range(4):
        assert guard.nudge(key * 131)
        (at,) = np.flatnonzero(np.asarray(x) != right)
        seen.add(int(at))
        assert abs(x[at]) < abs(right[at])
        assert right[at] == pytest.approx(float(x[at]), rel=2e-3)
        guard.mend()
        assert right.tobytes() == np.asarray(x).tobytes()
    guard.mend()
    assert right.tobytes() == np.asarray(x).tobytes()
    assert len(seen) > 1


def test_inputs_of_whole_numbers_are_left_alone(guarded):
    x, whole = memory(np.arange(500).astype(np.float32)), memory(np.arange(500))
    guard = guarded({"y": filled("float32", 4)}, inputs=[x, whole], key=4)
    guard.nudge(3)
    assert np.arange(500).tolist() == np.asarray(x).tolist() == np.asarray(whole).tolist()


@pytest.mark.parametrize("runs", [ONE_BY_ONE, Runs(96, 32), Runs(50257)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_input_is_put_together_as_on_the_host(kernels, dtype, runs):
    elements, key = 5000, (1 << 64) - 5
    block = np.random.default_rng(1).integers(0, 256, BLOCK * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    found = memory(np.zeros(elements, dtype))
    which = np.int64(elements), np.int32(found.itemsize), block.view(np.uint8), np.uint64(key)
    kernels["choose"]((3,), (64,), (found, *which, np.int64(runs.length), np.int64(runs.step), np.uint64(runs.count)))
    content = InputArray(block, (), (elements,), runs, key)
    assert found.tobytes() == content.on(np).tobytes()
