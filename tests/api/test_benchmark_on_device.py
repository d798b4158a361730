"""`prism_bench.benchmark` on a device: it agrees with the workbench, refuses lies, leaves everything as it was."""

from importlib.util import find_spec

import pytest

import prism_bench
from prism_bench import run as runs
from prism_bench.errors import MeasurementInvalid
from tests.built_in import CATALOGUE

pytestmark = pytest.mark.gpu
LARGE, RESIDENT = 64 << 20, 1 << 20
AGREEING = ("vector_add", "gelu_activation", "reduce_sum")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def cupy():
    import cupy

    return cupy


@pytest.fixture
def adding(cupy):
    """A function that makes a callable which adds two arrays of so many elements."""

    def make(count=RESIDENT):
        a, b, c = (cupy.ones(count, cupy.float32) for _ in range(3))
        return lambda: cupy.add(a, b, out=c)

    return make


@pytest.fixture
def works(cupy, adding):
    """A function that says whether the device still computes and times, and no error is left over."""

    def check():
        cupy.cuda.runtime.deviceSynchronize()
        assert 3.0 == float(cupy.full(1000, 3.0).mean())
        return all(prism_bench.benchmark(adding(), mode=mode).valid for mode in ("cold", "hot"))

    return check


def test_a_callable_is_timed_cold_and_hot_with_rates(adding):
    cold = prism_bench.benchmark(adding(LARGE), bytes=12 * LARGE, flops=LARGE, name="sum")
    assert ("cold_time", "sum", True) == (cold.metric, cold.subject, cold.valid)
    assert 0.5e12 < cold.bandwidth < 10e12
    assert cold.flop_rate == pytest.approx(cold.bandwidth / 12)
    assert "sum cold_time: " in str(cold)
    assert "B/s" in str(cold)


def test_cold_is_slower_than_hot_where_the_data_fit_in_the_cache(adding):
    call = adding(RESIDENT)
    cold, hot = (prism_bench.benchmark(call, mode=mode).median for mode in ("cold", "hot"))
    assert cold > 1.2 * hot


@pytest.fixture(scope="module")
def run():
    """The same kernels through the runs."""
    settings = runs.Settings(processes=2, peers=False, cpu_baseline=False)
    return runs.run(CATALOGUE, "cuda", [CATALOGUE.case(one.name) for one in cases()], settings)


def cases():
    return [case for case in CATALOGUE.cases(AGREEING, ["S1"]) if not case.variant]


@pytest.mark.parametrize("name", AGREEING)
def test_it_agrees_with_the_workbench(run, name):
    measured = next(case for case in run.cases if case.kernel == name and case.label == "S1" and not case.variant)
    runnable = prism_bench.prepare(name, "S1")
    with runnable:
        for metric, mode in (("cold_time", "cold"), ("hot_time", "hot")):
            assert prism_bench.benchmark(runnable, mode=mode).median == pytest.approx(
                measured.measurement(metric).median, rel=0.05
            )


def test_work_on_another_stream_is_refused(cupy, works):
    side = cupy.cuda.Stream(non_blocking=True)
    a = cupy.ones(LARGE, cupy.float32)

    def sneaky():
        with side:
            for _ in range(4):
                cupy.multiply(a, 1.0, out=a)

    with pytest.raises(MeasurementInvalid, match="the call uses another stream"):
        prism_bench.benchmark(sneaky)
    assert works()


@pytest.mark.parametrize("mode", ["cold", "hot"])
def test_a_callable_that_waits_for_the_device_is_refused(cupy, adding, works, mode):
    call = adding()

    def waits():
        call()
        cupy.cuda.runtime.deviceSynchronize()

    with pytest.raises(MeasurementInvalid, match="waits for the device"):
        prism_bench.benchmark(waits, mode=mode)
    assert works()


def test_a_callable_that_no_graph_can_hold_is_refused_hot(cupy, adding, works):
    call = adding()

    def asks():
        call()
        return cupy.cuda.get_current_stream().done

    assert prism_bench.benchmark(asks).valid
    with pytest.raises(MeasurementInvalid, match="cannot be captured"):
        prism_bench.benchmark(asks, mode="hot")
    assert works()


def test_an_exception_of_the_callable_is_the_callers_and_leaves_the_device_working(works):
    def fails():
        raise KeyError("mine")

    for mode in ("cold", "hot"):
        with pytest.raises(KeyError, match="mine"):
            prism_bench.benchmark(fails, mode=mode)
    assert works()


def test_an_exception_in_the_middle_of_timing_leaves_the_device_working(adding, works):
    call, left = adding(), [20]

    def fails_later():
        left[0] -= 1
        if left[0] < 0:
            raise KeyError("mine")
        call()

    with pytest.raises(KeyError, match="mine"):
        prism_bench.benchmark(fails_later)
    assert works()


def test_more_bytes_than_memory_can_move_are_refused(adding):
    with pytest.raises(MeasurementInvalid, match="at most"):
        prism_bench.benchmark(adding(), bytes=10**12)


def test_a_given_cupy_stream_is_used(cupy, adding):
    stream, call, seen = cupy.cuda.Stream(non_blocking=True), adding(), set()

    def watched():
        seen.add(cupy.cuda.get_current_stream().ptr)
        call()

    for mode in ("cold", "hot"):
        assert prism_bench.benchmark(watched, mode=mode, stream=stream).valid
    assert {stream.ptr} == seen


def test_the_current_stream_is_restored(cupy, adding):
    before = cupy.cuda.get_current_stream()
    prism_bench.benchmark(adding())
    assert before == cupy.cuda.get_current_stream()
    mine = cupy.cuda.Stream(non_blocking=True)
    with mine:
        prism_bench.benchmark(adding())
        assert mine.ptr == cupy.cuda.get_current_stream().ptr


def test_pinned_cache_lines_can_be_given_back():
    from prism_bench.backends.cuda.device import PersistingCache

    assert PersistingCache(0).reset()


@needs_torch
def test_torch_callables_are_timed_by_the_same_clock():
    """Adding large vectors costs PyTorch what it costs our kernel: both move the same bytes."""
    import torch

    a, b = (torch.ones(LARGE, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    with prism_bench.prepare("vector_add", "S1") as runnable:
        for mode in ("cold", "hot"):
            ours = prism_bench.benchmark(runnable, mode=mode).median
            theirs = prism_bench.benchmark(lambda: torch.add(a, b, out=c), mode=mode).median
            assert theirs == pytest.approx(ours, rel=0.1)


@needs_torch
def test_a_given_torch_stream_is_used_and_the_current_one_restored():
    import torch

    stream, seen, before = torch.cuda.Stream(), set(), torch.cuda.current_stream()
    a = torch.ones(RESIDENT, device="cuda")

    def watched():
        seen.add(torch.cuda.current_stream().cuda_stream)
        a.mul_(1.0)

    for mode in ("cold", "hot"):
        assert prism_bench.benchmark(watched, mode=mode, stream=stream).valid
    assert {stream.cuda_stream} == seen
    assert before == torch.cuda.current_stream()


@needs_torch
def test_a_torch_callable_that_waits_is_refused_and_the_device_works_afterwards(works):
    import torch

    a = torch.ones(RESIDENT, device="cuda")
    with pytest.raises(MeasurementInvalid, match="waits for the device"):
        prism_bench.benchmark(lambda: a.sum().item())
    assert works()


@needs_torch
def test_a_torch_callable_that_allocates_is_timed():
    import torch

    a = torch.ones(RESIDENT, device="cuda")
    for mode in ("cold", "hot"):
        assert prism_bench.benchmark(lambda: torch.softmax(a.view(1024, -1), 1), mode=mode).valid
