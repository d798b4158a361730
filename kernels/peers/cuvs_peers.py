"""Peers by cuVS: neighbours of all points by brute force, its results allocated beforehand."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from prism_bench.spec import AnyArray


def nearest_neighbours(
    cuvs: ModuleType, points: AnyArray, k: int, metric: str = "chebyshev"
) -> Callable[[], tuple[AnyArray, AnyArray]]:
    """Return a call that gives distances and indices of the k nearest of the points, each point itself among them."""
    cupy, brute_force = import_module("cupy"), import_module("cuvs.neighbors.brute_force")
    resources = import_module("cuvs.common").Resources(stream=cupy.cuda.get_current_stream().ptr)
    distances, indices = cupy.empty((len(points), k), "float32"), cupy.empty((len(points), k), "int64")
    index = brute_force.build(points, metric=metric, resources=resources)

    def search() -> tuple[AnyArray, AnyArray]:
        brute_force.search(index, points, k, neighbors=indices, distances=distances, resources=resources)
        return distances, indices

    return search


def pairwise_distances(cuvs: ModuleType, points: AnyArray, metric: str = "chebyshev") -> Callable[[], AnyArray]:
    """Return a call that gives the distances between all points, infinite from a point to itself."""
    cupy, distance = import_module("cupy"), import_module("cuvs.distance")
    resources = import_module("cuvs.common").Resources(stream=cupy.cuda.get_current_stream().ptr)
    result = cupy.empty((len(points), len(points)), "float32")

    def call() -> AnyArray:
        distance.pairwise_distance(points, points, out=result, metric=metric, resources=resources)
        cupy.fill_diagonal(result, float("inf"))
        return result

    return call


def joined(*parts: AnyArray) -> AnyArray:
    """Return points whose coordinates are those of the parts, side by side; a series has one coordinate."""
    cupy = import_module("cupy")
    return cupy.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
