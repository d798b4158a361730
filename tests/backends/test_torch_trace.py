"""Operators of torch peers: views do not count, and which of them are worth autotuning."""

import pytest

from prism_bench.backends.cuda.torch_trace import Operators, operators_of


@pytest.mark.parametrize(
    ("names", "gains"),
    [
        (("mm", "relu"), True),
        (("_softmax",), True),
        (("_scaled_dot_product_flash_attention",), True),
        (("native_layer_norm",), True),
        (("mul", "sum"), False),
        ((), False),
    ],
)
def test_products_norms_and_attention_gain_by_autotuning(names, gains):
    assert (gains, len(names)) == (Operators(names).gains_by_autotuning, Operators(names).calls)


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
