"""The state of CuPy and of torch's device: what a peer changes there is found, named and restored."""

import pytest

from prism_bench.backends import open_backend
from prism_bench.backends.cuda.peers.library_state import LibraryState, ready

pytestmark = pytest.mark.gpu


@pytest.fixture
def backend():
    """The device, with both libraries in the state in which peers find them."""
    backend = open_backend("cuda")
    ready("cupy")
    return backend


CUPY = {
    "cupy.cuda.Stream.use": lambda cupy: cupy.cuda.Stream().use(),
    "cupy.cuda.get_allocator()": lambda cupy: cupy.cuda.set_allocator(cupy.cuda.MemoryPool().malloc),
    "cupy._core.get_routine_accelerators()": lambda cupy: cupy._core.set_routine_accelerators([]),
    "cupy._core.get_reduction_accelerators()": lambda cupy: cupy._core.set_reduction_accelerators([]),
    "cupy._core.get_compute_type('f')": lambda cupy: cupy._core.set_compute_type("f", 7),
}


@pytest.mark.parametrize("name", CUPY)
def test_flags_of_cupy_are_restored(backend, name):
    state, stream = LibraryState.now(), backend.xp.cuda.get_current_stream().ptr
    CUPY[name](backend.xp)
    change = state.restore()
    assert ([name], []) == (change.names, change.lasting)
    assert stream == backend.xp.cuda.get_current_stream().ptr
    assert None is state.restore().reason


def test_the_stream_of_torch_is_restored(backend):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    ready("torch")
    torch.zeros(1, device="cuda")
    state, stream = LibraryState.now(), torch.cuda.current_stream().cuda_stream
    assert backend.xp.cuda.get_current_stream().ptr == stream
    torch.cuda.set_stream(torch.cuda.Stream())
    assert ["torch.cuda.set_stream"] == state.restore().names
    assert stream == torch.cuda.current_stream().cuda_stream


def test_the_first_attention_of_a_process_is_no_finding(backend):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    ready("torch")
    state, some = LibraryState.now(), torch.ones((1, 2, 128, 64), dtype=torch.bfloat16, device="cuda")
    torch.nn.functional.scaled_dot_product_attention(some, some, some)
    assert None is state.restore().reason


def test_numbers_drawn_on_the_device_are_no_finding(backend):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    ready("torch")
    torch.zeros(1, device="cuda")
    state, before = LibraryState.now(), torch.cuda.get_rng_state()
    torch.randn(8, device="cuda")
    assert None is state.restore().reason
    assert bool((before == torch.cuda.get_rng_state()).all())


def test_memory_in_arrays_is_counted_and_what_pools_keep_is_not(backend):
    cupy = backend.xp
    before = backend.held_bytes(True)
    array = cupy.zeros(64 << 20, dtype=cupy.uint8)
    assert 64 << 20 == backend.held_bytes(True).arrays - before.arrays
    del array
    after = backend.held_bytes(True)
    assert (before.arrays, True) == (after.arrays, abs(after.outside - before.outside) < 32 << 20)
