"""eps_i: distance of the k-th nearest neighbour of point i in the maximum norm, all pairs, itself left out.

Floor of S2 on an H200: D subtractions and D maxima (at half their rate) a pair: 3.6e11 issue slots = 12 ms; few bytes.
A point with a coordinate that is not finite has no neighbours (eps is NaN) and is nobody's. Duplicates give eps = 0.
"""

import numpy as np

from prism_bench import Golden, In, KernelSpec, Launch, Out, Rule, Scratch, Size, Variant, Workload, exact

BLOCK = 128
BLOCKS = 2112  # shares of the neighbours bring small problems up to so many blocks
SHORTEST = 32  # neighbours of a share


def points_per_thread(k):
    return 2 if k <= 16 else 1


def splits(n, k):
    groups = max(1, -(-n // (BLOCK * points_per_thread(k))))
    return max(1, min(BLOCKS // groups, n // SHORTEST))


def launches(indices):
    """Shares, then their merge."""
    flag = str(indices).lower()
    results = ("eps", "idx") if indices else ("eps", "indices")

    def launch(n, d, k, splits):
        own = points_per_thread(k)
        share = Launch(
            -(-n // (BLOCK * own)) * splits, BLOCK, entry=f"knn_shares<{d}, {k}, {flag}, {own}>",
            arguments=("x", "distances", "indices", "n", "splits"),
        )  # fmt: skip
        merge = Launch(
            -(-n // BLOCK), BLOCK, entry=f"knn_merge<{k}, {flag}>",
            arguments=("distances", "indices", *results, "n", "splits"),
        )  # fmt: skip
        return share, merge

    return launch


def nearest(x, k, xp):
    """Distances and indices of the k nearest in order, from float32 differences: k times the smallest, 2^24 pairs at
    once. Of equal distances the lower index comes first."""
    n = len(x)
    x = xp.where(xp.isfinite(x).all(axis=1)[:, None], x, xp.nan).astype("float32")
    distances, indices = xp.empty((n, k), "float32"), xp.empty((n, k), "int32")
    rows = max(1, (1 << 24) // max(n, 1))
    for first in range(0, n, rows):
        own = slice(first, min(n, first + rows))
        apart = xp.zeros((own.stop - own.start, n), "float32")
        for column in x.T:
            apart = xp.maximum(apart, xp.abs(column[own, None] - column[None]))
        apart = xp.where(xp.isnan(apart), xp.inf, apart)
        at = xp.arange(len(apart))
        apart[at, at + first] = xp.inf
        for q in range(k):
            index = apart.argmin(axis=1)
            distances[own, q] = apart[at, index]
            indices[own, q] = xp.where(xp.isfinite(distances[own, q]), index, -1)
            apart[at, index] = xp.inf
    return distances, indices


def reference(x, k, xp):
    return xp.where(xp.isfinite(x).all(axis=1), nearest(x, k, xp)[0][:, -1], xp.nan)


def reference_indices(x, k, xp):
    return reference(x, k, xp), nearest(x, k, xp)[1]


def torch_knn(torch, x, k):
    """Distances a slab at a time, as a user's brute force would."""
    rows = max(1, (1 << 28) // len(x))
    parts = [torch.cdist(part, x, p=float("inf")).kthvalue(k + 1, dim=1).values for part in x.split(rows)]
    return torch.cat(parts)


def lattice(n, d):
    """Points with many equal distances and duplicates."""
    return np.random.default_rng(3).integers(0, 4, size=(n, d))


def odd(n, d):
    """NaN, infinities and duplicates among ordinary points."""
    x = np.random.default_rng(4).normal(size=(n, d))
    x[3, 0], x[5, d - 1], x[6, 0], x[7] = np.nan, np.inf, np.inf, x[8]
    return x


ties = Golden(Workload(n=300, d=2, k=4), {"x": lattice}, {}, source="ties at the k-th place, duplicates")
strange = Golden(Workload(n=140, d=3, k=5), {"x": odd}, {}, source="NaN, infinities")

spec = KernelSpec(
    entry="knn_shares",
    arguments=(
        In("x", "n d"), Out("eps", "n"), Scratch("distances", "splits k n"), Scratch("indices", "1", dtype="int32"),
        Size("n"), Size("splits"),
    ),
    parameters={"k": 4},
    derived={"splits": splits},
    rules=(
        Rule("1 <= k < n", lambda n, k: 1 <= k < n),
        Rule("k <= 64", lambda k: k <= 64),
        Rule("d >= 1", lambda d: d >= 1),
    ),
    launch=launches(indices=False),
    reference=reference,
    tolerance=exact(),
    peers={"torch": torch_knn},
    peer_tolerance=exact(),
    flops=lambda n, d: n * n * (2 * d + 1),
    bytes_moved=lambda n, d: 4 * n * d + 4 * n,
    traffic_factor=None,
    workloads={
        "S0": Workload(n=200, d=3, k=4),
        "S1": Workload(n=16_384, d=3, k=4),
        "S2": Workload(n=131_072, d=7, k=5),
    },
    edges=(
        *(Workload(n=n, d=1, k=k) for n, k in ((2, 1), (5, 4), (129, 1), (257, 5))),
        Workload(n=300, d=7, k=5), Workload(n=70, d=10, k=3), Workload(n=150, d=2, k=64),
    ),
    golden=(
        Golden(
            Workload(n=5, d=1, k=2), {"x": [[0], [1], [3], [7], [7]]}, {"eps": [3, 2, 3, 4, 4]}, source="by hand",
        ),
        Golden(Workload(n=6, d=3, k=2), {"x": 2.5}, {"eps": 0.0}, source="duplicates: no distance"),
        ties,
        strange,
    ),
    variants={
        "indices": Variant(
            "the neighbours themselves besides, the nearest first",
            arguments=(
                In("x", "n d"), Out("eps", "n"), Out("idx", "n k", dtype="int32"), Scratch("distances", "splits k n"),
                Scratch("indices", "splits k n", dtype="int32"), Size("n"), Size("splits"),
            ),
            launch=launches(indices=True),
            reference=reference_indices,
            bytes_moved=lambda n, d, k: 4 * n * d + 4 * n + 4 * n * k,
            edges=(Workload(n=257, d=2, k=5), Workload(n=2, d=1, k=1)),
            golden=(ties, strange),
            only_labels=("S0", "S1"),
        ),
        "naive": Variant(
            "one thread per point, everything from global memory",
            arguments=(In("x", "n d"), Out("eps", "n"), Size("n")),
            launch=lambda n, d, k: Launch(-(-n // BLOCK), BLOCK, entry=f"knn_naive<{d}, {k}>"),
            edges=(Workload(n=130, d=3, k=4),),
            golden=(strange,),
            only_labels=("S0", "S1"),
        ),
    },
)  # fmt: skip
