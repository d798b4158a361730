"""Calls into the driver on one that is played: what is set aside in L2, and graphs that hold nothing."""

import ctypes
from types import SimpleNamespace

import pytest

from prism_bench.backends.cuda import device, timers
from prism_bench.backends.cuda import device as driver
from prism_bench.backends.cuda.device import PersistingCache, captured_nodes, device_uuids, is_blocking
from prism_bench.errors import MeasurementInvalid


class Driver:
    """The driver of a device with a limit and a stream with a window; a stream may be captured."""

    def __init__(self, limit=0, window=b"", nodes=None, flags=1, uuids=()):
        self.limit, self.window, self.nodes, self.flags = limit, window.ljust(64, b"\0"), nodes, flags
        self.resets = 0
        self.uuids = dict(zip(("slice", "gpu"), uuids, strict=False))

    def cuDeviceGet(self, device, number):  # noqa: N802
        device._obj.value = number.value
        return 0

    def cuDeviceGetUuid_v2(self, found, device):  # noqa: N802
        return self._uuid("slice", found, device)

    def cuDeviceGetUuid(self, found, device):  # noqa: N802
        return self._uuid("gpu", found, device)

    def _uuid(self, which, found, device):
        if device.value != 2 or which not in self.uuids:
            return 1
        ctypes.memmove(found, self.uuids[which], 16)
        return 0

    def cuCtxGetLimit(self, size, which):  # noqa: N802 - the driver's own names
        assert which == 6
        size._obj.value = self.limit
        return 0

    def cuCtxSetLimit(self, which, size):  # noqa: N802
        self.limit = size.value
        return 0

    def cuStreamGetAttribute(self, stream, which, value):  # noqa: N802
        ctypes.memmove(value, self.window, 64)
        return 0

    def cuStreamSetAttribute(self, stream, which, value):  # noqa: N802
        self.window = value.raw
        return 0

    def cuCtxResetPersistingL2Cache(self):  # noqa: N802
        self.resets += 1
        return 0

    def cuStreamGetCaptureInfo_v2(self, stream, status, number, graph, before, count):  # noqa: N802
        status._obj.value = int(self.nodes is not None)
        return 0

    def cuGraphGetNodes(self, graph, nodes, count):  # noqa: N802
        count._obj.value = self.nodes
        return 0

    def cuStreamGetFlags(self, stream, flags):  # noqa: N802
        flags._obj.value = self.flags
        return 0


WINDOW = bytes(range(1, 33)).ljust(64, b"\0")


def test_what_the_caller_set_aside_is_given_back_and_set_aside_again():
    played = Driver(limit=1 << 20, window=WINDOW)
    with PersistingCache(7, played) as cache:
        assert (0, bytes(64), 1) == (played.limit, played.window, played.resets)
        assert not cache.is_used
    assert (1 << 20, WINDOW) == (played.limit, played.window)


def test_an_exception_puts_it_back_too():
    played = Driver(limit=1 << 20, window=WINDOW)
    with pytest.raises(KeyError), PersistingCache(7, played):
        raise KeyError
    assert (1 << 20, WINDOW) == (played.limit, played.window)


@pytest.mark.parametrize("change", [{"limit": 1 << 20}, {"window": WINDOW}])
def test_what_a_call_sets_aside_itself_is_seen(change):
    played = Driver()
    with PersistingCache(7, played) as cache:
        vars(played).update(change)
        assert cache.is_used
        cache.forget()
        assert (False, 2) == (cache.is_used, played.resets)


def test_a_driver_that_does_not_know_of_it_is_left_alone():
    with PersistingCache(7, SimpleNamespace()) as cache:
        assert (False, False) == (cache.is_used, cache.reset())


def test_the_nodes_of_a_capture_are_counted():
    assert 3 == captured_nodes(7, Driver(nodes=3))
    assert captured_nodes(7, Driver()) is None
    assert captured_nodes(7, SimpleNamespace()) is None


def test_a_stream_tells_whether_it_waits_for_the_default_one():
    assert (False, True, False) == (
        is_blocking(7, Driver(flags=1)), is_blocking(7, Driver(flags=0)), is_blocking(7, SimpleNamespace())
    )  # fmt: skip


class Capturing:
    """A stream that is captured while its calls add nodes to the driver's graph."""

    ptr = 7

    def __init__(self):
        self.ended = 0

    def end_capture(self):
        self.ended += 1
        return self

    def __getattr__(self, word):
        return lambda *given: None


@pytest.mark.parametrize(
    ("adds", "words"), [((0, 0), "in 2 of 2 calls"), ((1, 0), "in 1 of 2 calls"), ((0, 5), "in 1 of 2 calls")]
)
def test_a_graph_that_some_call_adds_nothing_to_is_refused(monkeypatch, adds, words):
    played, left, stream = Driver(nodes=0), list(adds), Capturing()
    monkeypatch.setattr(driver, "library", lambda: played)

    def call():
        played.nodes += left.pop(0)

    with pytest.raises(MeasurementInvalid, match=f"enqueues nothing {words} while a CUDA graph"):
        timers.captured(stream, call, 2)
    assert 1 == stream.ended


def test_a_graph_of_all_calls_is_replayed(monkeypatch):
    played = Driver(nodes=0)
    monkeypatch.setattr(driver, "library", lambda: played)

    def call():
        played.nodes += 3

    assert callable(timers.captured(Capturing(), call, 5))


WITH_ZEROS = b"\xeb\0" + bytes(range(1, 13)) + b"\0\xff"


@pytest.mark.parametrize("cut", [b"\xeb", "\xeb"])
def test_a_uuid_that_cupy_cuts_at_a_zero_is_read_whole(monkeypatch, cut):
    played = Driver(uuids=(b"other, of a slice", WITH_ZEROS))
    assert [b"other, of a slic", WITH_ZEROS] == list(device_uuids(2, played))
    monkeypatch.setattr(driver, "library", lambda: played)
    assert device._uuid({"uuid": cut}, 2) == WITH_ZEROS.hex()
    assert device._uuid({"uuid": b""}, 2) == b"other, of a slic".hex()


def test_a_uuid_is_whole_or_unknown(monkeypatch):
    monkeypatch.setattr(driver, "library", lambda: Driver())
    assert device._uuid({"uuid": b"\xeb"}, 2) == device._uuid({}, 2) == ""
    assert device._uuid({"uuid": WITH_ZEROS + b"beyond"}, 2) == WITH_ZEROS.hex()
