"""What the transfer-entropy kernels share: inputs, sizes, launches by warps, and the float64 side of their steps."""

from types import ModuleType

from prism_bench import In, Launch, Rule, Workload, uniform
from prism_bench.spec import AnyArray, ArrayModule, Device, nonnegative

from .neighbours import SAMPLES, apart, kth_smallest, slabs

THREADS = 256
EMBEDDING = {"dx": 2, "dy": 2}
DIMENSIONS = Rule("dx and dy from 1 to 8", lambda dx, dy: 1 <= dx <= 8 and 1 <= dy <= 8)
NEIGHBOURS = Rule("1 <= k < n and k <= 64", lambda n, k: 1 <= k < n and k <= 64)
X_PAST, Y_PAST = In("x_past", "n dx", fill=SAMPLES), In("y_past", "n dy", fill=SAMPLES)
Y_FUTURE = In("y_future", "n", fill=SAMPLES)
RADII = In("eps", "n", fill=uniform(0.1, 1.5), domain=nonnegative())

# The documents' 200 points, then what fills the device. The matrix of distances ends at 32,768 points (4.3 GB).
SIZES = {"S0": Workload(n=200), "S1": Workload(n=16_384), "S2": Workload(n=131_072, dx=3, dy=3)}
MATRIX_SIZES = {"S0": Workload(n=200), "S1": Workload(n=16_384), "S2": Workload(n=32_768)}
EDGES = (
    *(Workload(n=n) for n in (2, 33, 257, 530)),
    *(Workload(n=n, dx=dx, dy=dy) for n, dx, dy in ((130, 1, 1), (133, 3, 3), (520, 3, 3), (70, 1, 3), (70, 2, 1))),
)


def own_points(n: int, device: Device) -> int:
    """Points of a warp: one each where several would leave multiprocessors without a block."""
    return 4 if n > THREADS // 32 * 4 * device.sm_count else 1


def by_warps(entry: str, n: int, own: int = 1, arguments: tuple[str, ...] | None = None) -> Launch:
    """A launch whose warps have `own` points each."""
    return Launch(-(-n // (THREADS // 32 * own)), THREADS, entry=entry, arguments=arguments)


def counting(
    entry: str, sizes: tuple[int, ...], n: int, device: Device, arguments: tuple[str, ...] | None = None
) -> Launch:
    """A launch that counts neighbours: eight points of a warp where blocks then fill the device, else fewer."""
    own = next((own for own in (8, 4, 2) if 2 * n >= 3 * own * THREADS // 32 * device.sm_count), 1)
    return by_warps(f"{entry}<{', '.join(map(str, (*sizes, own)))}>", n, own, arguments)


def as_column(values: AnyArray) -> AnyArray:
    return values[:, None]


def radii(x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, k: int, xp: ArrayModule) -> AnyArray:
    """eps: the distance of each point's k-th neighbour in the joint space, from float32 differences."""
    eps = xp.empty(len(x_past))
    joint = xp.concatenate((x_past, as_column(y_future), y_past), axis=1)
    for own in slabs(len(joint)):
        eps[own] = kth_smallest(apart(joint, own, xp), k, xp)
    return eps


def nearer(spaces: list[AnyArray], eps: AnyArray, xp: ArrayModule) -> list[AnyArray]:
    """Points strictly nearer than eps in each of the spaces, which are arrays of points."""
    counts = [xp.empty(len(eps), "int64") for _ in spaces]
    for own in slabs(len(eps)):
        for space, count in zip(spaces, counts, strict=True):
            count[own] = (apart(space, own, xp) < eps[own, None]).sum(axis=1)
    return counts


def spaces(x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, xp: ArrayModule) -> list[AnyArray]:
    """y (future and past), xz (both pasts) and z (y's past)."""
    future = as_column(y_future)
    return [xp.concatenate((future, y_past), axis=1), xp.concatenate((x_past, y_past), axis=1), y_past]


def term(n_y: AnyArray, n_xz: AnyArray, n_z: AnyArray, k: int, special: ModuleType) -> AnyArray:
    """psi(k) - psi(n_y + 1) - psi(n_xz + 1) + psi(n_z + 1), in nats."""
    psi_y, psi_xz, psi_z = (special.digamma(count + 1.0) for count in (n_y, n_xz, n_z))
    return special.digamma(float(k)) - psi_y - psi_xz + psi_z


def terms_within(
    x_past: AnyArray, y_past: AnyArray, y_future: AnyArray, eps: AnyArray, k: int, xp: ArrayModule, special: ModuleType
) -> AnyArray:
    return term(*nearer(spaces(x_past, y_past, y_future, xp), eps, xp), k, special)  # pyright: ignore[reportCallIssue] - three
