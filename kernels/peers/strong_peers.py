"""Peers of the strongest libraries for networks. Each is a set-up: it compiles, and returns the call to time."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from prism_bench.spec import Peer

NO_MASK = "takes no mask that is added to the scores"


def ready(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return the call after its first run, which compiles."""
    call()
    return call


def fastest(
    calls: Iterable[Callable[[], Any]], suits: Callable[[Any], bool] = lambda result: True
) -> Callable[[], Any]:
    """Return the call that takes the least device time, each timed after one run.

    Those that raise are left out, as are those whose result does not suit.
    """
    torch = import_module("torch")
    times: list[tuple[float, Callable[[], Any]]] = []
    failures: list[Exception] = []
    for call in calls:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        try:
            if not suits(call()):
                raise ValueError("no mode of the library gives a result that suits")
        except Exception as error:  # a library refuses what it does not offer here in its own ways
            failures.append(error)
            continue
        begin.record()
        for _ in range(3):
            call()
        end.record()
        end.synchronize()
        times.append((begin.elapsed_time(end), call))
    if not times:
        raise failures[0]
    return min(times, key=lambda one: one[0])[1]


def attention_peers(by_heads: Callable[..., Any], joined: Callable[[Any], Any]) -> dict[str, Peer]:
    """Return the peers of attention with 16-bit operands.

    Parameters
    ----------
    by_heads : callable
        Makes a view [batch, heads, length, width] of one operand; asks for it and for `heads`.
    joined : callable
        Turns such an output into the shape of the kernel's.
    """

    def cudnn(torch: ModuleType, q: Any, k: Any, v: Any, heads: int, scale: float, causal: int, masked: int) -> Any:
        if masked:
            raise ValueError(f"cuDNN's attention is a peer without a mask only: {NO_MASK} here")
        names = import_module("torch.nn.attention")
        views = [by_heads(x, heads) for x in (q, k, v)]
        attend = torch.nn.functional.scaled_dot_product_attention

        def call() -> Any:
            with names.sdpa_kernel(names.SDPBackend.CUDNN_ATTENTION):
                return joined(attend(*views, is_causal=bool(causal), scale=scale))

        return ready(call)

    def flash(
        flash_attn: ModuleType, q: Any, k: Any, v: Any, heads: int, scale: float, causal: int,
        masked: int,
    ) -> Any:  # fmt: skip
        if masked:
            raise ValueError(f"flash-attn-4 {NO_MASK}")
        views = [by_heads(x, heads).transpose(1, 2) for x in (q, k, v)]
        attend = flash_attn.flash_attn_func
        options = {"softmax_scale": scale, "causal": bool(causal)}
        return ready(lambda: joined(attend(*views, **options)[0].transpose(1, 2)))

    return {"torch_cudnn": Peer(cudnn, prepares=True), "flash_attn": Peer(flash, prepares=True)}


def on_bfloats(peer: Peer, names: Sequence[str], *, widened: bool = True) -> Peer:
    """Return the peer for operands that travel as bits of bfloat16; `widened` turns its result into FP32."""

    @wraps(peer.call)
    def call(**given: Any) -> Any:
        torch = import_module("torch")
        timed = peer.call(**given | {name: given[name].view(torch.bfloat16) for name in names})
        return (lambda: timed().float()) if widened else timed

    return Peer(call, peer.prepares, peer.poor, peer.work)


def quack_softmax(quack: ModuleType, x: Any, temperature: float) -> Any:
    refuse_temperature(temperature)
    softmax = import_module("quack.softmax").softmax
    return ready(lambda: softmax(x))


def liger_softmax(liger: ModuleType, x: Any, temperature: float) -> Any:
    refuse_temperature(temperature)
    return ready(lambda: liger.LigerSoftmaxFunction.apply(x))


def refuse_temperature(temperature: float) -> None:
    """Raise a ValueError for what a softmax without a temperature cannot do."""
    if temperature != 1:
        raise ValueError("this softmax has no temperature")


def quack_layer_norm(quack: ModuleType, x: Any, gamma: Any, beta: Any, eps: float, cols: int) -> Any:
    forward = import_module("quack.rmsnorm").layernorm_fwd
    rows = x.view(-1, cols)
    return ready(lambda: forward(rows, gamma, beta, eps=eps).view(x.shape))


def liger_layer_norm(liger: ModuleType, x: Any, gamma: Any, beta: Any, eps: float) -> Any:
    return ready(lambda: liger.LigerLayerNormFunction.apply(x, gamma, beta, eps))


def liger_embedding(liger: ModuleType, id: Any, table: Any) -> Any:
    return ready(lambda: liger.LigerEmbeddingFunction.apply(table, id))


# Why quack's `gemm_act` is no peer of products with an epilogue.
NO_EPILOGUE = {"quack": "quack 0.6.5 raises a TypeError in gemm_act with nvidia-cutlass-dsl 4.8.1"}


def quack_gemm(quack: ModuleType, a: Any, b: Any) -> Any:
    """Return a product of 16-bit operands with FP32 results, in quack's default tile."""
    kind = import_module("torch").float32
    return ready(lambda: quack.gemm(a, b, out_dtype=kind, tuned=False))
