"""The k largest logits of each row, best first, their probabilities by softmax at a temperature, and one of them drawn.

Ties go to the lower index, a NaN counts as -inf, temperature 0 leaves the largest alone; +inf outweighs every number.
With top_p only the fewest best of at least that share remain. A row without a logit above -inf draws -1.

Indices are compared by what they select: libraries choose freely among equal logits, which a row of drawn numbers has
at S1. The kernel's own order among them is checked by golden data.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

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
    Workload,
    exact,
    normalising,
    selection,
)  # fmt: skip
from prism_bench.spec import AnyArray, ArrayModule, Fill, Peer, Runs, real

from ..include.numbers.philox import uniforms
from ..peers.strong_peers import fastest, ready

# Memory-bound: each logit is read once. Testing each logit for itself, with the bar as low as the first 4096 left it,
# was bound by instruction issue. Now a thread tests its largest, and those that pass are walked bit by bit (at S2 some
# lane of nearly every warp has one in the first half of a row). 64 registers leave half of an SM's warps.
MOST = 4096  # entries to be kept: sorted in shared memory


def distinct(rng: np.random.Generator, count: int, axes: Mapping[str, Any]) -> AnyArray:
    """Normal in distribution, no two alike: what libraries do with ties is their own."""
    from statistics import NormalDist

    knots = np.linspace(1e-7, 1 - 1e-7, 4001)
    return np.interp((rng.permutation(count) + 0.5) / max(1, count), knots, [NormalDist().inv_cdf(q) for q in knots])


DISTINCT = Fill(distinct, "normal, no two alike", real(), runs=lambda axes: Runs(max(1, axes["vocabulary"])))


def launch(rows: int, vocabulary: int, k: int, capacity: int) -> Launch:
    entry = f"top_k_sampling<{str(vocabulary % 4 == 0).lower()}>"
    return Launch(grid=rows, block=256, shared=8 * (capacity + 1 + 2 * k), entry=entry)


def best(logits: AnyArray, k: int, xp: ArrayModule) -> tuple[AnyArray, AnyArray]:
    """Values and indices of the k best, a few rows at a time: sorting all at once would take too much memory."""
    values = xp.where(xp.isnan(logits), -xp.inf, logits)
    index = xp.zeros((len(values), k), dtype="int32")
    for begin in range(0, len(values), 256):
        index[begin : begin + 256] = (-values[begin : begin + 256]).argsort(axis=1, kind="stable")[:, :k]
    return xp.take_along_axis(values, index.astype("int64"), axis=1), index


def reference(
    logits: AnyArray, k: int, temperature: float, top_p: float, seed: int, xp: ArrayModule
) -> tuple[AnyArray, AnyArray, AnyArray]:
    z, index = best(logits, k, xp)
    there = z[:, :1] > -xp.inf
    below = (z - z[:, :1]) / xp.asarray(float(temperature))
    weight = xp.where(z == z[:, :1], 1.0, xp.exp(below)) * there
    sums = weight.cumsum(axis=1)
    weight *= sums - weight < top_p * sums[:, -1:]
    total = weight.sum(axis=1, keepdims=True)
    drawn = uniforms(len(logits), seed, xp)[:, None] * total
    chosen = (weight.cumsum(axis=1)[:, :-1] <= drawn) & (weight[:, 1:] > 0)
    token = xp.take_along_axis(index, chosen.sum(axis=1, keepdims=True), axis=1)[:, 0]
    return index, weight / xp.where(there, total, 1.0), xp.where(there[:, 0], token, -1)


def torch_uniforms(torch: ModuleType, logits: Any, seed: int) -> Any:
    """Return the random number of each row, on the device of the logits."""
    return torch.tensor(uniforms(len(logits), seed, np)[:, None], device=logits.device)


def torch_top_k(torch: ModuleType, logits: Any, k: int, temperature: float, seed: int) -> Callable[[], Any]:
    """The draw by the same random numbers, which are made beforehand and cost the peer nothing."""
    drawn = torch_uniforms(torch, logits, seed)
    return lambda: sampled(torch, torch.topk(logits, k), temperature, drawn)


def sampled(torch: ModuleType, selected: tuple[Any, Any], temperature: float, drawn: Any) -> Any:
    """Return indices, probabilities and drawn tokens of the k best logits, which come with their indices."""
    z, index = selected
    p = torch.softmax(z / temperature, dim=1)
    chosen = torch.searchsorted(p.double().cumsum(dim=1), drawn, right=True).clamp(max=z.shape[1] - 1)
    return index.int(), p, index.gather(1, chosen)[:, 0].int()


def flashinfer_top_k(flashinfer: ModuleType, logits: Any, k: int, temperature: float, seed: int) -> Callable[[], Any]:
    """FlashInfer's selection in the fastest of its modes; probabilities and the draw as PyTorch's peer does them."""
    torch = import_module("torch")

    def sorted_afterwards() -> Any:
        z, index = flashinfer.top_k(logits, k)
        z, best = torch.sort(z, dim=1, descending=True)
        return z, index.gather(1, best)

    chosen = fastest((lambda: flashinfer.top_k(logits, k, sorted=True), sorted_afterwards))
    drawn = torch_uniforms(torch, logits, seed)
    return ready(lambda: sampled(torch, chosen(), temperature, drawn))


def few_values(rows: int, vocabulary: int) -> AnyArray:
    """Ties everywhere, zeros of both signs among them."""
    return np.random.default_rng(8).choice([-1.0, -0.0, 0.0, 2.0, 2.5], size=(rows, vocabulary))


def awkward(rows: int, vocabulary: int) -> AnyArray:
    """A row each of -inf, NaN, one number, +inf twice, and large numbers."""
    z = np.random.default_rng(9).normal(size=(rows, vocabulary))
    z[0], z[1], z[2], z[2, 7] = -np.inf, np.nan, -np.inf, 0.5
    z[3, [5, 60]], z[4], z[4, 9] = np.inf, np.where(z[4] > 0, 3e38, -3e38), np.nan
    return z


def from_logits(logits: AnyArray) -> AnyArray:
    """What is selected from: libraries give equal logits in any order."""
    return logits


# This kernel gives equal logits in the order of their indices.
IN_ORDER = {"index": exact(), "p": normalising(), "token": exact()}

spec = KernelSpec(
    entry="top_k_sampling<true>",
    arguments=(
        In("logits", "rows vocabulary", fill=DISTINCT),
        Out("index", "rows k", "int32"), Out("p", "rows k"), Out("token", "rows", "int32"), Size("vocabulary"),
        Size("k"), Size("capacity"), Scalar("temperature", "float64"), Scalar("top_p", "float64"),
        Scalar("seed", "uint64"),
    ),
    parameters={"temperature": 1.0, "top_p": 1.0, "seed": 1234},
    derived={"capacity": lambda k: max(4096, 2 << max(0, k - 1).bit_length())},
    rules=(
        Rule(f"1 <= k <= vocabulary, and at most {MOST}", lambda k, vocabulary: 1 <= k <= min(vocabulary, MOST)),
        Rule("temperature >= 0", lambda temperature: temperature >= 0),
        Rule("0 < top_p <= 1", lambda top_p: 0 < top_p <= 1),
    ),
    launch=launch,
    reference=reference,
    tolerance={"index": selection(from_logits), "p": normalising(), "token": selection(from_logits)},
    peers={
        "torch": Peer(torch_top_k, prepares=True, work="random numbers are made beforehand"),
        "flashinfer": Peer(flashinfer_top_k, prepares=True),
    },
    looked_at={"quack": "its top-k takes rows of at most 4096 columns, their number and k powers of two"},
    workloads={
        "S0": Workload(rows=1, vocabulary=1024, k=50),
        "S1": Workload(rows=2048, vocabulary=128_256, k=50),
        "S2": Workload(rows=4096, vocabulary=262_144, k=256),
    },
    edges=(
        Workload(rows=0, vocabulary=9, k=2),
        Workload(rows=3, vocabulary=1, k=1),
        Workload(rows=40, vocabulary=5, k=5),
        Workload(rows=2, vocabulary=1003, k=33, temperature=0.7),
        Workload(rows=1, vocabulary=20_000, k=50, top_p=0.8),
        Workload(rows=3, vocabulary=100, k=10, temperature=0.0),
        Workload(rows=1, vocabulary=10_001, k=700, temperature=3.0, top_p=0.3, seed=2**63 + 5),
    ),
    golden=(
        Golden(Workload(rows=3, vocabulary=999, k=40), {"logits": few_values}, {}, source="ties, -0 and 0",
               tolerance=IN_ORDER),
        Golden(Workload(rows=5, vocabulary=100, k=12), {"logits": awkward}, {}, source="-inf, NaN, +inf, overflow",
               tolerance=IN_ORDER),
        Golden(Workload(rows=5, vocabulary=100, k=100, temperature=0.0), {"logits": awkward}, {},
        source="the same, all kept", tolerance=IN_ORDER),
        Golden(
            Workload(rows=1, vocabulary=9000, k=5), {"logits": lambda vocabulary: np.arange(vocabulary)}, {},
            source="ascending: every logit is a candidate", tolerance=IN_ORDER,
        ),
        Golden(
            Workload(rows=1, vocabulary=9001, k=5), {"logits": 1.0}, {"index": [[0, 1, 2, 3, 4]], "p": 0.2},
            source="all alike: the first ones", tolerance=IN_ORDER,
        ),
        Golden(
            Workload(rows=1, vocabulary=1024, k=1024, seed=0), {"logits": 0.0}, {"token": 0x6627E8D5 >> 22},
            tolerance=IN_ORDER,
            source="Philox4x32-10 of counter and key 0 begins with 6627e8d5 (Random123's known answers)",
        ),
    ),
    budgets=tuple(Budget("bandwidth_share", at_least=0.85, label=label) for label in ("S1", "S2")),
)  # fmt: skip
