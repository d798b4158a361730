"""`prism_bench.benchmark` on a device: honest callables of many kinds get their times, and nobody is accused."""

import warnings
from importlib.util import find_spec

import pytest

import prism_bench

pytestmark = [pytest.mark.gpu, pytest.mark.parametrize("mode", ["cold", "hot"])]
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def cupy():
    import cupy

    return cupy


@pytest.fixture(scope="module")
def torch():
    import torch

    return torch


def timed(call, mode, **more):
    result = prism_bench.benchmark(call, mode=mode, **more)
    assert result.valid, result
    assert not [note for note in result.notes if "level" in note], result
    return result


@pytest.mark.parametrize("count", [1000, 1 << 20, 64 << 20])
def test_elementwise(cupy, mode, count):
    a, b, c = (cupy.ones(count, cupy.float32) for _ in range(3))
    timed(lambda: cupy.add(a, b, out=c), mode, bytes=12 * count, flops=count)


@pytest.mark.parametrize("size", [256, 4096])
def test_product_of_cupy(cupy, mode, size):
    if mode == "hot":
        pytest.skip("CuPy calls cuBLAS in no graph")
    a, b, c = (cupy.ones((size, size), cupy.float32) for _ in range(3))
    timed(lambda: cupy.matmul(a, b, out=c), mode, bytes=12 * size**2, flops=2 * size**3)


def test_in_place(cupy, mode):
    a = cupy.ones(16 << 20, cupy.float32)
    timed(lambda: cupy.multiply(a, 1.0, out=a), mode, bytes=8 * a.size)


def test_a_chain_of_kernels(cupy, mode):
    a = cupy.ones(1 << 20, cupy.float32)

    def chain():
        for _ in range(20):
            cupy.multiply(a, 1.0, out=a)

    timed(chain, mode)


def test_a_graph_of_the_callers(cupy, mode):
    if mode == "hot":
        pytest.skip("a graph inside a graph is another question")
    a, stream = cupy.ones(16 << 20, cupy.float32), cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for _ in range(3):
            cupy.multiply(a, 1.0, out=a)
        graph = stream.end_capture()
    timed(lambda: graph.launch(), mode)


def test_lanes_that_begin_and_end_on_the_timed_stream(cupy, mode):
    """Work on another stream is no lie where the timed stream waits for it."""
    a, b = (cupy.ones(16 << 20, cupy.float32) for _ in range(2))
    side, begin, end = cupy.cuda.Stream(non_blocking=True), *(cupy.cuda.Event(disable_timing=True) for _ in range(2))

    def forked():
        main = cupy.cuda.get_current_stream()
        begin.record(main)
        side.wait_event(begin)
        with side:
            cupy.multiply(b, 1.0, out=b)
        cupy.multiply(a, 1.0, out=a)
        end.record(side)
        main.wait_event(end)

    timed(forked, mode)


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_product_of_torch(torch, mode, dtype):
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=getattr(torch, dtype)) for _ in range(2))
    timed(lambda: a @ b, mode, bytes=3 * a.nbytes, flops=2 * 4096**3)


@needs_torch
def test_attention_that_takes_milliseconds(torch, mode):
    q, k, v = (torch.randn(4, 32, 4096, 128, device="cuda", dtype=torch.float32) for _ in range(3))
    attention = torch.nn.functional.scaled_dot_product_attention
    assert timed(lambda: attention(q, k, v), mode).median > 2e-3


@needs_torch
def test_small_attention_and_softmax(torch, mode):
    q, k, v = (torch.randn(2, 8, 512, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    timed(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v).softmax(-1), mode)


@needs_torch
def test_training_step(torch, mode):
    """A backward pass is enqueued by a thread of PyTorch's, which the call waits for."""
    if mode == "hot":
        pytest.skip("PyTorch captures a backward pass only after a warm-up on the capturing stream")
    x = torch.randn(2048, 2048, device="cuda", requires_grad=True)
    timed(lambda: (x @ x).relu().sum().backward(), mode)


@needs_torch
@pytest.mark.parametrize("how", ["default", "reduce-overhead"])
def test_compiled(torch, mode, how):
    if (mode, how) == ("hot", "reduce-overhead"):
        pytest.skip("a graph inside a graph is another question")
    a, b = (torch.randn(1 << 22, device="cuda") for _ in range(2))
    try:
        with warnings.catch_warnings(action="ignore"):
            compiled = torch.compile(lambda a, b: torch.relu(a * b + a), mode=how)
            compiled(a, b)
    except Exception as error:  # without a compiler for the host there is nothing to ask
        pytest.skip(f"torch.compile does not work here: {type(error).__name__}")
    timed(lambda: compiled(a, b), mode, bytes=12 << 22)
