"""The device's flow on a CuPy that only writes down what it is asked for."""

from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.cuda.timers import CudaFlow


class Stream:
    """Streams tell a common log."""

    log: list = []
    ptr = 0

    def __init__(self, name="side", non_blocking=False):
        self.name = name

    def __enter__(self):
        self.log.append(("enter", self.name))

    def __exit__(self, *exception):
        self.log.append(("exit", self.name))

    def __getattr__(self, word):
        return lambda *given: self.log.append((word, self.name, *given)) or (self if word == "end_capture" else None)


class Event:
    """So do events."""

    def __init__(self, disable_timing):
        assert disable_timing

    def record(self, stream):
        Stream.log.append(("record", stream.name))


@pytest.fixture
def flow():
    Stream.log = []
    pinned = SimpleNamespace(alloc_pinned_memory=lambda size: memoryview(bytearray(size)), Stream=Stream, Event=Event)
    return CudaFlow(SimpleNamespace(cuda=pinned), Stream("main"))


def test_lane_0_is_the_backends_own_stream_and_others_are_made_once(flow):
    with flow.lane(0), flow.lane(3), flow.lane(3):
        pass
    assert ["main", "side", "side"] == [name for word, name in Stream.log if word == "enter"]
    assert flow.lane(3) is flow.lane(3) is not flow.lane(1)


def test_points_are_events(flow):
    point = flow.point()
    flow.reached(point, 1)
    flow.wait(0, point)
    assert [("record", "side"), ("wait_event", "main", point)] == Stream.log


def test_a_graph_is_captured_on_lane_0_and_replayed_there(flow):
    replay = flow.captured(lambda: Stream.log.append("work"))
    replay()
    words = [one if one == "work" else one[0] for one in Stream.log]
    assert ["synchronize", "begin_capture", "work", "end_capture", "upload", "launch"] == words


def test_a_capture_that_fails_is_ended(flow):
    with pytest.raises(ZeroDivisionError):
        flow.captured(lambda: 1 / 0)
    assert "end_capture" == Stream.log[-1][0]


def test_host_arrays_have_the_shape_and_can_be_written(flow):
    array = flow.host_array((3, 5), "float16")
    array[...] = 2
    assert ((3, 5), np.dtype("float16"), 30.0) == (array.shape, array.dtype, float(array.sum()))
