"""The reductions of grid_reduce.cuh in float64."""

from prism_bench.spec import AnyArray, ArrayModule


def reduced(terms: AnyArray, how: str, xp: ArrayModule) -> AnyArray:
    """The reduction of a vector; that of no element is 0, or -inf for the largest."""
    if not terms.size:
        return xp.full(1, -xp.inf if how == "max" else 0.0)
    return {"sum": terms.sum, "squares": lambda: (terms * terms).sum(), "max": terms.max}[how]()


def reduced_size(sizes: AnyArray, how: str, xp: ArrayModule) -> AnyArray:
    """How far a reduction moves with the absolute terms of its elements; the largest may be finite next to a -inf."""
    if not sizes.size:
        return 0.0
    largest = lambda: xp.where(xp.isfinite(sizes), sizes, 0.0).max()  # noqa: E731
    return {"sum": sizes.sum, "squares": lambda: 2 * (sizes * sizes).sum(), "max": largest}[how]()
