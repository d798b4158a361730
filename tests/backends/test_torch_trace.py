"""Operators of torch peers: views do not count, and which of them are worth autotuning."""

import pytest

from prism_bench.backends.cuda.peers.torch_forms import Operators, operators_of


@pytest.mark.parametrize(
    ("names", "gains"),
    [
        (("mm", "relu"), True),
        (("_softmax",), True),
        (("_scaled_dot_product_flash_attention",), True),
        (("native_layer_norm",), True),
        (("addmv",), True),
        (("mul", "sum", "dot"), False),
        ((), False),
    ],
)
def test_products_norms_and_attention_gain_by_autotuning(names, gains):
    assert (gains, len(names)) == (Operators(names).gains_by_autotuning, Operators(names).calls)


def test_products_without_tensor_cores_are_not_autotuned():
    assert not Operators(("mm", "_softmax"), without_tensor_cores=True).gains_by_autotuning


@pytest.mark.parametrize(("dtype", "tf32", "gains"), [
    ("float16", False, True), ("bfloat16", False, True), ("float32", False, False), ("float32", True, True),
    ("float64", True, False),
])  # fmt: skip
def test_the_operands_and_the_flag_decide_whether_tensor_cores_are_used(dtype, tf32, gains):
    torch = pytest.importorskip("torch")
    x, flags = torch.ones(4, 4, dtype=getattr(torch, dtype)), torch.backends.cuda.matmul
    before = flags.allow_tf32
    flags.allow_tf32 = tf32
    try:
        assert gains == operators_of(torch, lambda: torch.softmax(x @ x, -1)).gains_by_autotuning
    finally:
        flags.allow_tf32 = before
    assert operators_of(torch, lambda: torch.softmax(x, -1)).gains_by_autotuning


def test_views_and_allocations_are_no_operators():
    torch = pytest.importorskip("torch")
    x = torch.ones(4, 6)
    calls = {
        "softmax": lambda: torch.softmax(x, -1),
        "views": lambda: x.T[1:].unsqueeze(0).expand(3, 5, 4),
        "copied": lambda: x.T.reshape(-1),
        "allocated": lambda: torch.empty_like(x),
        "linear": lambda: torch.nn.functional.linear(x, x, torch.Tensor.view(x[:, 0], 4)),
        "chain": lambda: torch.relu(x @ x.T),
        "in place": lambda: x.mul_(2),
    }
    found = {name: operators_of(torch, call).names for name, call in calls.items()}
    assert {
        "softmax": ("_softmax",), "views": (), "copied": ("clone",), "allocated": (), "linear": ("addmm",),
        "chain": ("mm", "relu"), "in place": ("mul_",),
    } == found  # fmt: skip
