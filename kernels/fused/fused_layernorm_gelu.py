"""y = GELU(gamma (x - mean) / sqrt(variance + eps) + beta), mean and biased variance over the last axis.

Rows up to 16,384 columns are read once and stay in registers; longer ones are read twice. A constant row gives
GELU(beta); `approximate` is that of GELU.
"""

import numpy as np

from prism_bench import (
    Budget,
    Golden,
    In,
    KernelSpec,
    Launch,
    Out,
    Rule,
    Scalar,
    Size,
    Variant,
    Workload,
    normalising,
)

# Bound by memory: 8 bytes an element at the copy rate; gamma and beta come from the caches, GELU takes 20 instructions.


def launch(batch, length, cols, approximate):
    """The fewest threads and registers that hold a row."""
    form = "GeluTanh" if approximate == "tanh" else "Gelu"
    block = next((b for b in (32, 64, 128, 256) if 16 * b >= cols), 256 if cols <= 8192 else 1024)
    items = next((i for i in (4, 8, 16, 32) if i * block >= cols), None)
    if items is None or cols > 16_384:
        return Launch(batch * length, 1024, entry=f"fused_layernorm_gelu_two_reads<{form}>")
    width = 4 if cols % 4 == 0 else 1
    entry = f"fused_layernorm_gelu<{items}, {width}, {max(256, block)}, {form}>"
    return Launch(batch * length, block, entry=entry)


def gelu(x, approximate, special):
    if approximate == "tanh":
        return x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    return x * special.ndtr(x)


def reference(x, gamma, beta, eps, approximate, xp, special):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return gelu(centred / xp.sqrt(variance + eps) * gamma + beta, approximate, special)


def torch_layer_norm_gelu(torch, x, gamma, beta, eps, cols, approximate):
    y = torch.nn.functional.layer_norm(x, (cols,), gamma, beta, eps)
    return torch.nn.functional.gelu(y, approximate=approximate)


def far_mean(batch, length, cols):
    """A mean of 10,000 with deviation 1, which a one-pass variance would lose."""
    return 1e4 + np.random.default_rng(3).normal(size=(batch, length, cols))


def constant_rows(batch, length, cols):
    """Rows of one value each: small, large, not representable."""
    return np.broadcast_to(np.resize([1e4, 0.1, 0.0, -3e7], length)[None, :, None], (batch, length, cols))


def close_to(data, cols, source):
    """Golden data answered by the reference."""
    shift = np.linspace(-1, 1, cols)
    return Golden(Workload(batch=1, length=2, cols=cols), {"x": data, "gamma": 1.5, "beta": shift}, {}, source=source)


TOKENS = "batch length cols"

spec = KernelSpec(
    entry="fused_layernorm_gelu<32, 4, 256, Gelu>",
    arguments=(
        In("x", TOKENS), In("gamma", "cols"), In("beta", "cols"), Out("y", TOKENS), Size("cols"), Scalar("eps"),
    ),
    parameters={"eps": 1e-5, "batch": 1, "approximate": "none"},
    rules=(
        Rule("eps > 0, so that a constant row gives GELU(beta)", lambda eps: eps > 0),
        Rule("approximate to be 'none' or 'tanh'", lambda approximate: approximate in ("none", "tanh")),
    ),
    launch=launch,
    reference=reference,
    tolerance=normalising(),
    peers={"torch": torch_layer_norm_gelu},
    flops=lambda batch, length, cols: 17 * batch * length * cols,
    workloads={
        "S0": Workload(length=32, cols=128),
        "S1": Workload(batch=16, length=2048, cols=4096),
        "S2": Workload(batch=8, length=8192, cols=8192),
    },
    edges=(
        *(Workload(length=r, cols=c) for r, c in ((0, 8), (3, 1), (5, 2), (3, 31), (3, 257), (2, 1000), (2, 4099))),
        *(Workload(length=r, cols=c) for r, c in ((1, 8192), (1, 9001), (1, 16_384), (1, 16_385))),
        Workload(batch=3, length=5, cols=36, eps=0.1),
        *(Workload(length=2, cols=c, approximate="tanh") for c in (100, 1001, 16_400)),
    ),
    golden=(
        close_to(far_mean, 1000, "mean 10,000, deviation 1"),
        close_to(far_mean, 8192, "the same in a long row"),
        close_to(far_mean, 17_000, "the same in a row read twice"),
        *(
            Golden(
                Workload(batch=1, length=4 if cols < 4000 else 2, cols=cols),
                {"x": constant_rows, "gamma": 2.0, "beta": lambda cols: np.linspace(-1, 1, cols)},
                {},
                source="variance 0: GELU(beta)",
            )
            for cols in (777, 4096, 16_390)
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
    variants={
        "tanh": Variant(
            "with the tanh form of GELU",
            parameters={"eps": 1e-5, "batch": 1, "approximate": "tanh"},
            peers={"torch": torch_layer_norm_gelu},
            edges=(),
            golden=(),
            only_labels=("S0", "S1"),
        ),
    },
)  # fmt: skip
