"""`prism_bench.benchmark` against callables that try to look faster than they are, on a device."""

import threading
import time

import pytest

import prism_bench
from prism_bench.backends.cuda.device import PersistingCache
from prism_bench.errors import MeasurementInvalid

pytestmark = pytest.mark.gpu
LARGE, RESIDENT = 64 << 20, 4 << 20
BYTES = 12 * LARGE


@pytest.fixture(scope="module")
def cupy():
    import cupy

    return cupy


@pytest.fixture
def adding(cupy):
    """A function that makes a callable which adds two arrays of so many elements."""

    def make(count=LARGE):
        a, b, c = (cupy.ones(count, cupy.float32) for _ in range(3))
        return lambda: cupy.add(a, b, out=c)

    return make


@pytest.fixture(autouse=True)
def afterwards(cupy):
    """Whatever was refused, the device works and honest callables get their times."""
    yield
    cupy.cuda.runtime.deviceSynchronize()
    a = cupy.ones(1 << 20, cupy.float32)
    assert prism_bench.benchmark(lambda: cupy.multiply(a, 1.0, out=a)).valid


@pytest.fixture
def pinning(cupy):
    """A function that keeps an array in L2 for everything on a stream; undone afterwards."""
    import ctypes

    driver, pinned = ctypes.CDLL("libcuda.so.1"), []

    def pin(stream, array):
        limit = ctypes.c_size_t(array.nbytes)
        assert driver.cuCtxSetLimit(6, limit) == 0
        window = ctypes.create_string_buffer(64)
        ctypes.c_uint64.from_buffer(window, 0).value = array.data.ptr
        ctypes.c_uint64.from_buffer(window, 8).value = array.nbytes
        ctypes.c_float.from_buffer(window, 16).value = 1.0
        ctypes.c_int.from_buffer(window, 20).value = 2  # hits persist
        ctypes.c_int.from_buffer(window, 24).value = 1  # misses stream through
        assert driver.cuStreamSetAttribute(ctypes.c_void_p(stream.ptr), 1, window) == 0
        pinned.append(stream)

    yield pin
    driver.cuCtxSetLimit(6, ctypes.c_size_t(0))
    driver.cuCtxResetPersistingL2Cache()


def test_lines_that_the_caller_keeps_in_the_cache_are_given_back(cupy, pinning):
    """Cold means cold, whatever the caller's stream and limit ask for; both are as they were afterwards."""
    a, b = cupy.ones(RESIDENT, cupy.float32), cupy.empty(RESIDENT, cupy.float32)
    call = lambda: cupy.add(a, 1.0, out=b)  # noqa: E731
    plain = prism_bench.benchmark(call).median
    stream = cupy.cuda.Stream(non_blocking=True)
    pinning(stream, a)
    with stream:
        call()
    for given in (stream, None):
        assert prism_bench.benchmark(call, stream=given).median == pytest.approx(plain, rel=0.1)
    assert PersistingCache(stream.ptr).is_used


def test_a_call_that_does_nothing_while_a_graph_is_captured_is_refused(cupy, adding):
    call = adding()

    def idle_in_graphs():
        if not cupy.cuda.get_current_stream().is_capturing():
            call()

    assert prism_bench.benchmark(idle_in_graphs, bytes=BYTES).valid
    with pytest.raises(MeasurementInvalid, match="enqueues nothing in .* while a CUDA graph is captured"):
        prism_bench.benchmark(idle_in_graphs, mode="hot", bytes=BYTES)


def test_a_call_that_does_less_while_a_graph_is_captured_is_refused(cupy, adding):
    large, small = adding(), adding(1000)

    def less_in_graphs():
        (small if cupy.cuda.get_current_stream().is_capturing() else large)()

    with pytest.raises(MeasurementInvalid, match="it does less there|does not do the work of the call"):
        prism_bench.benchmark(less_in_graphs, mode="hot")


def test_more_bytes_than_caches_and_memory_give_are_refused_hot(adding):
    for count, claimed in ((LARGE, 100 * BYTES), (1000, BYTES)):
        with pytest.raises(MeasurementInvalid, match="at most"):
            prism_bench.benchmark(adding(count), mode="hot", bytes=claimed)


def test_work_that_a_thread_enqueues_later_is_refused(cupy, adding):
    call, streams = adding(), cupy.cuda.Stream(non_blocking=True)

    def later():
        def work():
            time.sleep(2e-3)
            with streams:
                call()

        threading.Thread(target=work).start()

    with pytest.raises(MeasurementInvalid, match="after it has returned|after the call was done"):
        prism_bench.benchmark(later)
    time.sleep(0.05)


@pytest.mark.parametrize("mode", ["cold", "hot"])
def test_a_little_work_on_another_stream_is_refused(cupy, adding, mode):
    call, small, side = adding(RESIDENT), adding(100_000), cupy.cuda.Stream(non_blocking=True)

    def elsewhere():
        call()
        with side:
            small()

    with pytest.raises(MeasurementInvalid, match="uses another stream"):
        prism_bench.benchmark(elsewhere, mode=mode)


@pytest.mark.parametrize("mode", ["cold", "hot"])
def test_a_call_that_works_one_time_in_ten_is_refused(adding, mode):
    call, count = adding(), [0]

    def seldom():
        count[0] += 1
        if count[0] % 10 == 0:
            call()

    with pytest.raises(MeasurementInvalid, match="enqueues nothing in|two levels"):
        prism_bench.benchmark(seldom, mode=mode)


@pytest.mark.parametrize("mode", ["cold", "hot"])
def test_a_call_that_works_less_nine_times_in_ten_is_refused(adding, mode):
    large, small, count = adding(), adding(1000), [0]

    def seldom():
        count[0] += 1
        (small if count[0] % 10 else large)()

    if mode == "cold":
        with pytest.raises(MeasurementInvalid, match="two levels"):
            prism_bench.benchmark(seldom)
    else:  # a graph holds all of them, so its time is the mean
        with pytest.raises(MeasurementInvalid, match="two levels|does not do|does less"):
            prism_bench.benchmark(seldom, mode=mode)


@pytest.mark.parametrize("mode", ["cold", "hot"])
def test_an_empty_call_has_no_time(mode):
    with pytest.raises(MeasurementInvalid, match="at launch overhead: nothing to time|enqueues nothing"):
        prism_bench.benchmark(lambda: None, mode=mode)


@pytest.mark.parametrize("mode", ["cold", "hot"])
def test_more_operations_than_any_tensor_core_does_are_refused(adding, mode):
    with pytest.raises(MeasurementInvalid, match="at most, of any type"):
        prism_bench.benchmark(adding(), mode=mode, flops=10**15)


@pytest.mark.parametrize("name", ["get_elapsed_time", "Event", "get_current_stream"])
def test_a_replaced_function_of_the_clock_is_reported(cupy, adding, monkeypatch, name):
    call = adding()
    prism_bench.benchmark(call)
    monkeypatch.setattr(cupy.cuda, name, {"get_elapsed_time": lambda start, stop: 1e-3}.get(name, object))
    with pytest.raises(MeasurementInvalid, match=f"cupy.cuda.{name} was replaced"):
        prism_bench.benchmark(call)


def test_a_function_that_is_replaced_while_it_is_timed_is_reported(cupy, adding, monkeypatch):
    call = adding()

    def patches():
        monkeypatch.setattr(cupy.cuda, "get_elapsed_time", lambda start, stop: 1e-3)
        monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
        call()

    with pytest.raises(MeasurementInvalid, match="was replaced"):
        prism_bench.benchmark(patches)
