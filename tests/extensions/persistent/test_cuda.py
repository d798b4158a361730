"""The CUDA machine on a stand-in for CuPy: required features of a device, and its errors."""

from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.persistent.queue import Board, CudaMachine, served

ORDER = served([])
NAMES = ("cudaDevAttrCooperativeLaunch", "cudaDevAttrCanMapHostMemory")
APART = 1 << 40  # from the host's addresses to the device's


class DeviceError(Exception):
    """An error like CuPy's, made of a number or a text."""


class Runtime:
    """A device that offers what is not in `lacks`, and whose streams answer `status`."""

    CUDARuntimeError = DeviceError

    def __init__(self, lacks=(), status=0, refuses=None):
        self._lacks, self._refuses, self.status = lacks, refuses, status
        self.registered = []
        for number, name in enumerate(NAMES):
            setattr(self, name, number)

    def deviceGetAttribute(self, attribute, device):  # noqa: N802 - the runtime's own names
        return int(NAMES[attribute] not in self._lacks)

    def getDeviceProperties(self, device):  # noqa: N802
        return {"multiProcessorCount": 2, "sharedMemPerBlockOptin": 1 << 16, "major": 9, "minor": 0, "l2CacheSize": 1,
                "totalGlobalMem": 1, "name": b"Toy"}  # fmt: skip

    def hostRegister(self, address, nbytes, flags):  # noqa: N802
        if self._refuses:
            raise DeviceError(self._refuses)
        self.registered.append((address, nbytes, flags))

    def pointerGetAttributes(self, address):  # noqa: N802
        assert address == self.registered[0][0]
        return SimpleNamespace(devicePointer=address + APART)

    def streamQuery(self, stream):  # noqa: N802
        return self.status

    def deviceSynchronize(self):  # noqa: N802
        pass


class Stream:
    def __init__(self, non_blocking):
        assert non_blocking
        self.ptr = 7

    def synchronize(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


class DeviceArray(np.ndarray):
    """An array like CuPy's, in the host's memory; `copies` are the directions and bytes of copies on a stream."""

    copies = []

    def get(self, stream):
        self.copies.append(("out", self.size))
        return np.array(self)

    def set(self, values, stream):
        self.copies.append(("in", values.size))
        self[...] = values


def zeros(shape, dtype):
    return np.zeros(shape, dtype).view(DeviceArray)


def machine(**changes):
    """Return a machine and its runtime."""
    runtime = Runtime(**changes)
    driver = SimpleNamespace(CUDADriverError=DeviceError)
    cuda = SimpleNamespace(runtime=runtime, driver=driver, Stream=Stream, Device=lambda: SimpleNamespace(id=0))
    return CudaMachine(SimpleNamespace(cuda=cuda, zeros=zeros, asarray=np.asarray)), runtime


@pytest.fixture
def launched(monkeypatch):
    """Arguments of the launches of a kernel that is not compiled."""
    launches = []

    def kernel(grid, block, arguments, shared_mem):
        launches.append((grid, block, arguments))

    monkeypatch.setattr(CudaMachine, "_kernel", lambda *_, **__: kernel)
    return launches


@pytest.mark.parametrize(
    ("lacks", "reason"),
    [
        (NAMES[:1], "Toy offers no cooperative launches"),
        (NAMES, "Toy offers no cooperative launches and no memory of the host's in its own address space"),
    ],
)
def test_missing_device_features_are_reported(lacks, reason):
    with pytest.raises(BackendUnavailable, match=reason):
        machine(lacks=lacks)[0].serve(ORDER, Board(2))


def test_unshareable_board_is_reported(launched):
    with pytest.raises(BackendUnavailable, match="cannot be shared with Toy: not here"):
        machine(refuses="not here")[0].serve(ORDER, Board(2))
    assert [] == launched


def test_refused_launch_is_reported(monkeypatch):
    def refuse(*_, **__):
        raise DeviceError("too large")

    monkeypatch.setattr(CudaMachine, "_kernel", lambda *_, **__: refuse)
    ours, _ = machine()
    ours.allocate(ORDER)
    with pytest.raises(BackendUnavailable, match="Toy does not launch the queue kernel: too large"):
        ours.serve(ORDER, Board(2))


def test_kernel_that_does_not_fit_is_reported(monkeypatch):
    """Shared memory is requested when the kernel is loaded."""

    def refuse(*_, **__):
        raise DeviceError("invalid argument")

    monkeypatch.setattr(CudaMachine, "_kernel", refuse)
    with pytest.raises(BackendUnavailable, match="Toy does not launch the queue kernel: invalid argument"):
        machine()[0].serve(ORDER, Board(2))


def test_the_kernel_is_launched_on_the_devices_addresses_of_the_board(launched):
    board = Board(4)
    ours, runtime = machine()
    ours.allocate(ORDER)
    ours.serve(ORDER, board)
    pulse, requests, answers = (array.ctypes.data for array in board.arrays())
    ((grid, block, arguments),) = launched
    addresses = [int(argument) - APART for argument in arguments[:3]]
    assert ((2,), (256,), [requests, answers, pulse]) == (grid, block, addresses)
    assert [4, ORDER.table.size] == list(arguments[-2:])
    assert [(pulse, board.nbytes, 2)] == runtime.registered


def test_copies_are_made_once_before_the_kernel_runs(launched, monkeypatch):
    """The first copies allocate memory, which would wait for the endless kernel."""
    monkeypatch.setattr(DeviceArray, "copies", [])
    machine()[0].allocate(ORDER)
    assert {"out", "in"} == {way for way, _ in DeviceArray.copies}
    assert len({size for _, size in DeviceArray.copies}) == 1
    assert [] == launched


@pytest.mark.parametrize(("first", "second"), [(100, 60 << 10), (60 << 10, 100)])
def test_a_kernel_launched_twice_may_have_as_much_shared_memory_as_the_launch_with_most(first, second, monkeypatch):
    """CUDA keeps one number for a function over all launches."""
    kernel = SimpleNamespace(max_dynamic_shared_size_bytes=48 << 10)
    module = SimpleNamespace(get_function=lambda name: kernel)
    compiled = SimpleNamespace(path="library", lowered={"entry": "entry"})
    monkeypatch.setattr("prism_bench.extensions.persistent.queue.compile_source", lambda *_: compiled)
    ours, _ = machine()
    ours._cupy.RawModule = lambda **_: module
    for shared in (first, second):
        ours._kernel("source", (), "entry", shared)
    assert 60 << 10 == kernel.max_dynamic_shared_size_bytes


def test_stream_query_is_running_done_or_an_error():
    ours, runtime = machine(status=600)
    assert ours.serving()
    runtime.status = 0
    assert not ours.serving()
    runtime.status = 700
    with pytest.raises(BackendUnavailable, match="the queue kernel ended: 700"):
        ours.serving()
