"""Set-ups of peers by cuBLASLt, flash-attn-4, quack, Liger and FlashInfer, with stand-ins for the libraries."""

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from prism_bench.backends.base import forget_kept_choices
from prism_bench.backends.cuda.peers.torch_forms import prepared_call
from prism_bench.spec.peer import Peer
from tests.built_in import CATALOGUE
from tests.kernels.lt_stand_in import COSTS, Clock, CublasLt, tensor, torch_stand_in

SPECS = {case.kernel: case.spec for case in CATALOGUE.cases()}
LIBRARIES = ("flash_attn", "flashinfer", "liger", "nvmath", "quack")
PEERS = [(kernel, spec.peer(name)) for kernel, spec in SPECS.items() for name in spec.peers]
STRONG = [(kernel, peer) for kernel, peer in PEERS if peer.library.name in LIBRARIES]
random = np.random.default_rng(5)


def included(name: str) -> Any:
    return importlib.import_module(f"prism_bench_catalogue.peers.{name}")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setitem(sys.modules, "torch", torch_stand_in(clock))
    return clock


@pytest.fixture
def lt(monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path) -> Iterator[CublasLt]:
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path))
    kinds = SimpleNamespace(COMPUTE_32F=1, COMPUTE_32F_FAST_TF32=2)
    bindings, cublas = CublasLt(clock), SimpleNamespace(ComputeType=kinds)
    monkeypatch.setitem(sys.modules, "nvmath.bindings.cublasLt", bindings)
    monkeypatch.setitem(sys.modules, "nvmath.bindings.cublas", cublas)
    included("lt_products")._handle.cache_clear()
    yield bindings
    included("lt_products")._handle.cache_clear()


NVMATH: Any = SimpleNamespace(CudaDataType=SimpleNamespace(CUDA_R_32F="float32", CUDA_R_16F="float16"))


def test_a_set_up_runs_once_and_the_function_that_it_returns_is_what_is_timed() -> None:
    seen: list[str] = []

    def prepare(quack: object, rows: int) -> Callable[[], None]:
        seen.append(f"set up for {rows}")
        return lambda: seen.append("timed")

    offered = {"quack": None, "rows": 3, "others": 4}
    timed = prepared_call(Peer(prepare, prepares=True), offered, "a peer")
    assert ["set up for 3"] == seen
    timed()
    timed()
    assert ["set up for 3", "timed", "timed"] == seen


def test_every_strong_library_is_asked_and_by_set_ups_alone() -> None:
    assert set(LIBRARIES) == {peer.library.name for _, peer in STRONG}
    assert [] == [kernel for kernel, peer in STRONG if not peer.prepares]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("turned", ["neither", "left", "right", "both"])
def test_a_product_is_row_major_whichever_operand_is_stored_transposed(lt: CublasLt, dtype: str, turned: str) -> None:
    a, b = (random.normal(size=shape).astype(dtype) for shape in ((3, 5), (5, 4)))
    left = tensor(a.T).T if turned in ("left", "both") else tensor(a)
    right = tensor(b.T).T if turned in ("right", "both") else tensor(b)
    found = included("lt_products").product(NVMATH, left, right)()
    assert "float32" == found.dtype
    np.testing.assert_allclose(found, a.astype("float32") @ b.astype("float32"), rtol=1e-5)


def test_a_linear_layer_adds_the_bias_of_each_column_before_the_activation(lt: CublasLt) -> None:
    x, w, bias = random.normal(size=(3, 5)), random.normal(size=(5, 4)), random.normal(size=4)
    peer = SPECS["fused_linear_relu"].peer("nvmath").call
    found = peer(NVMATH, *(tensor(one.astype("float32")) for one in (x, w, bias)), layout="in_out")()
    np.testing.assert_allclose(found, np.maximum(x @ w + bias, 0), rtol=1e-5, atol=1e-6)
    turned = peer(NVMATH, *(tensor(one.astype("float32")) for one in (x, w.T, bias)), layout="out_in")()
    np.testing.assert_allclose(turned, found, rtol=1e-5, atol=1e-6)


def test_the_fastest_algorithm_is_chosen_before_the_timing_and_used_once_a_call(lt: CublasLt) -> None:
    one = tensor(np.ones((2, 2), "float32"))
    timed = included("lt_products").product(NVMATH, one, one)
    assert {index for index, _ in lt.calls} == set(range(len(COSTS)))
    lt.calls.clear()
    timed()
    assert [(COSTS.index(min(COSTS)), 7)] == lt.calls


def test_a_later_process_takes_the_choice_until_it_is_forgotten(lt: CublasLt) -> None:
    one, wide = (tensor(np.ones((2, columns), "float32")) for columns in (2, 3))
    make = included("lt_products").product
    make(NVMATH, one, one)
    for again, tried in ((one, 0), (wide, len(COSTS))):
        lt.calls.clear()
        make(NVMATH, one, again)
        assert tried == len({index for index, _ in lt.calls})
    lt.calls.clear()
    make(NVMATH, one, one)()
    assert [(COSTS.index(min(COSTS)), 7)] == lt.calls
    assert 2 == forget_kept_choices()
    make(NVMATH, one, one)
    assert len(COSTS) == len({index for index, _ in lt.calls})


def test_trying_algorithms_ends_when_enough_device_time_is_spent(lt: CublasLt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(included("lt_products"), "TRIED_SECONDS", 1e-3)
    one = tensor(np.ones((2, 2), "float32"))
    included("lt_products").product(NVMATH, one, one)
    assert {0} == {index for index, _ in lt.calls}


def test_only_the_tf32_variant_computes_in_tf32(lt: CublasLt) -> None:
    one = tensor(np.ones((2, 2), "float32"))
    for kernel in ("matmul", "matmul:tf32", "fused_matmul_relu", "fused_matmul_relu:tf32"):
        SPECS[kernel].peer("nvmath").call(nvmath=NVMATH, a=one, b=one)
    assert [1, 2, 1, 2] == lt.compute


def test_a_product_that_is_dropped_destroys_its_descriptors(lt: CublasLt) -> None:
    one = tensor(np.ones((2, 2), "float32"))
    timed = included("lt_products").product(NVMATH, one, one)
    assert lt.alive
    del timed
    gc.collect()
    assert set() == lt.alive


class FlashAttention:
    """flash-attn-4's call by NumPy, for [batch, length, heads, width]; `calls` counts."""

    calls = 0

    def flash_attn_func(self, q: Any, k: Any, v: Any, softmax_scale: float, causal: bool) -> tuple[Any, None]:
        self.calls += 1
        scores = softmax_scale * np.einsum("bihd,bjhd->bhij", q, k)
        if causal:
            scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return View(np.einsum("bhij,bjhd->bihd", weights / weights.sum(-1, keepdims=True), v)), None


class View(np.ndarray):
    """A tensor as attention's peers see it."""

    def __new__(cls, array: Any) -> "View":
        return np.asarray(array).view(cls)

    def transpose(self, first: int, second: int) -> "View":
        return View(np.swapaxes(self, first, second))

    def unflatten(self, axis: int, sizes: tuple[int, ...]) -> "View":
        return View(self.reshape(*self.shape[:axis], *sizes, *self.shape[axis + 1 :]))

    def flatten(self, axis: int) -> "View":
        return View(self.reshape(*self.shape[:axis], -1))


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize(("kernel", "shape"), [
    ("fused_attention_softmax", (2, 3, 6, 4)), ("multi_head_attention", (2, 6, 12)),
])  # fmt: skip
def test_flash_attention_gives_the_kernel_s_result(kernel: str, shape: tuple[int, ...], causal: int) -> None:
    spec, library = SPECS[kernel], FlashAttention()
    arrays = {name: random.normal(size=shape) for name in "qkv"}
    sizes = {"heads": 3, "scale": 0.5, "causal": causal, "masked": 0}
    timed = spec.peer("flash_attn").call(library, **{n: View(x) for n, x in arrays.items()}, **sizes)
    assert 1 == library.calls
    reference: Any = spec.reference
    asked = {"length": 6, "width": 4, "mask": None, "xp": np, **{n: x for n, x in sizes.items() if n != "heads"}}
    np.testing.assert_allclose(timed(), np.reshape(reference(**arrays, **asked), shape), rtol=1e-6)
    assert 2 == library.calls
    with pytest.raises(ValueError, match="takes no mask that is added to the scores"):
        spec.peer("flash_attn").call(library, **arrays, **sizes | {"masked": 1})


class Counted:
    """A call of a library, which returns its first array."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []

    def __call__(self, *given: Any, **options: Any) -> Any:
        self.given.append((*given, options) if options else given)
        return given[0]

    apply = __call__


ONE_CALL: list[tuple[str, str, dict[str, Any]]] = [
    ("softmax", "quack", {"temperature": 1.0}),
    ("softmax", "liger", {"temperature": 1.0}),
    ("layer_norm", "quack", {"gamma": 1, "beta": 0, "eps": 1e-5, "cols": 4}),
    ("layer_norm", "liger", {"gamma": 1, "beta": 0, "eps": 1e-5}),
]


@pytest.mark.parametrize(("kernel", "name", "others"), ONE_CALL, ids=lambda one: one if isinstance(one, str) else "")
def test_the_first_call_is_in_the_set_up_and_each_later_one_is_one_call(
    kernel: str, name: str, others: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    call, x = Counted(), Rows(np.ones((2, 3, 4)))
    for module, function in (("quack.softmax", "softmax"), ("quack.rmsnorm", "layernorm_fwd")):
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{function: call}))
    library = SimpleNamespace(LigerSoftmaxFunction=call, LigerLayerNormFunction=call)
    timed = SPECS[kernel].peer(name).call(library, x, **others)
    assert 1 == len(call.given)
    assert (2, 3, 4) == timed().shape
    assert 2 == len(call.given)


class Rows(np.ndarray):
    """A tensor whose `view` is a reshape."""

    def __new__(cls, array: Any) -> "Rows":
        return np.ndarray.view(np.asarray(array), cls)

    def view(self, *shape: Any) -> "Rows":  # pyright: ignore[reportIncompatibleMethodOverride]: a tensor's method
        return self.reshape(*shape)


@pytest.mark.parametrize("name", ["quack", "liger"])
def test_a_softmax_without_temperature_refuses_one(name: str) -> None:
    with pytest.raises(ValueError, match="no temperature"):
        SPECS["softmax"].peer(name).call(None, None, temperature=2.0)


def test_the_fastest_of_several_calls_is_kept_and_what_raises_is_left_out(clock: Clock) -> None:
    def taking(milliseconds: float) -> Callable[[], float]:
        def call() -> float:
            clock.milliseconds += milliseconds
            return milliseconds

        return call

    def refuses() -> float:
        raise RuntimeError("not offered here")

    fastest = included("strong_peers").fastest
    assert 2.0 == fastest([taking(3.0), refuses, taking(2.0)])()
    assert 3.0 == fastest([taking(3.0), taking(2.0)], suits=lambda result: result > 2)()
    with pytest.raises(RuntimeError, match="not offered here"):
        fastest([refuses])


def test_bits_of_bfloat16_are_viewed_as_such_and_the_result_is_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = ModuleType("torch")
    torch.bfloat16 = "bfloat16"
    monkeypatch.setitem(sys.modules, "torch", torch)
    seen = SimpleNamespace(view=lambda dtype: f"as {dtype}")
    result = SimpleNamespace(float=lambda: "widened")

    def prepare(quack: object, a: Any, k: int) -> Callable[[], Any]:
        assert ("as bfloat16", 3) == (a, k)
        return lambda: result

    peer = included("strong_peers").on_bfloats(Peer(prepare, prepares=True, work="less"), "a")
    assert ("quack", True, "less") == (peer.library.name, peer.prepares, peer.work)
    assert "widened" == peer.call(quack=None, a=seen, k=3)()
